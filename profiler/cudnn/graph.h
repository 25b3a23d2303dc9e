// cuDNN's graph interface: descriptors with owners, and the engines that run an operation graph. Of this folder alone.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profiler/cudnn/cuda.h"

namespace sibyl::cudnn {

// A backend descriptor: set(), then finalize(). A copy is the same descriptor. What it was set to, it keeps: cuDNN does
// not promise to.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) : state_(std::make_shared<State>()) {
    check(cudnnBackendCreateDescriptor(type, &state_->handle), "a descriptor");
  }

  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const void* values,
                  std::size_t count = 1);
  Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, values.data(), values.size());
  }
  Descriptor& set(cudnnBackendAttributeName_t name, std::int64_t value) { return set(name, CUDNN_TYPE_INT64, &value); }
  Descriptor& set(cudnnBackendAttributeName_t name, bool value) { return set(name, CUDNN_TYPE_BOOLEAN, &value); }
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    return set(name, CUDNN_TYPE_DATA_TYPE, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return keep(value).set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &value.state_->handle);
  }
  Descriptor& keep(const Descriptor& other) {
    state_->kept.push_back(other.state_);
    return *this;
  }
  Descriptor& finalize(const char* what);
  [[nodiscard]] cudnnBackendDescriptor_t handle() const { return state_->handle; }

 private:
  struct State {
    State() = default;
    ~State() {
      if (handle) cudnnBackendDestroyDescriptor(handle);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    cudnnBackendDescriptor_t handle = nullptr;
    std::vector<std::shared_ptr<State>> kept;
  };
  std::shared_ptr<State> state_;
};

cudnnDataType_t data_type(Type type);

// A tensor that a graph reads or writes (or, virtual, hands from operation to operation). `id` is unique in the graph.
// `summed_into`: in the order in which flash attention adds up its queries' gradients.
Descriptor tensor(std::int64_t id, cudnnDataType_t type, const std::vector<std::int64_t>& extents,
                  const std::vector<std::int64_t>& strides, bool is_virtual = false, bool by_value = false,
                  bool summed_into = false);

// An engine with its knobs, ready to be executed.
class Plan {
 public:
  Plan(Descriptor plan, std::size_t workspace, std::string name)
      : plan_(std::move(plan)), workspace_(workspace), name_(std::move(name)) {}
  void execute(const Libraries& libraries, std::span<const std::int64_t> ids, std::span<void* const> data,
               void* workspace) const;
  [[nodiscard]] std::size_t workspace() const { return workspace_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  Descriptor plan_;
  std::size_t workspace_;
  std::string name_;
};

// The device that engines are chosen for: one that is there, or (since cuDNN 9.8) one that is only described.
class Target {
 public:
  explicit Target(cudnnHandle_t handle) : handle_(handle) {}
  explicit Target(Descriptor properties) : properties_(std::move(properties)) {}
  // By cuDNN's own description of a device's properties, as JSON. A Refusal where this cuDNN reads none, or not this.
  static Target described(const std::string& json);

  // Tells a descriptor what it is for, by whichever of its attributes fits.
  void put(Descriptor& descriptor, std::optional<cudnnBackendAttributeName_t> handle,
           std::optional<cudnnBackendAttributeName_t> properties) const;

 private:
  cudnnHandle_t handle_ = nullptr;
  std::optional<Descriptor> properties_;
};

// What engines may do to be taken.
struct Allowed {
  bool tensor_cores = true;   // else only those that compute f32 as f32
  std::size_t workspace = 0;  // at most; 0: any
};

// The plans for a graph of these (finalised) operations: those of the heuristic, best first, then the fallback's; with
// `all`, those of every engine that takes the graph, too. Never empty: a graph that no engine takes is a Refusal.
std::vector<std::shared_ptr<Plan>> plans(const Target& target, const std::vector<Descriptor>& operations,
                                         const Allowed& allowed, bool all);

}  // namespace sibyl::cudnn
