#include "profiler/cudnn/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sibyl::cudnn {
namespace {

// What cuDNN said last, where it says more than a status does.
std::string said() {
#if CUDNN_VERSION >= 90000
  std::array<char, 4096> text{};
  cudnnGetLastErrorString(text.data(), text.size());
  return text.front() ? fmt::format(" ({})", text.data()) : "";
#else
  return "";
#endif
}

void check_graph(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw Refusal(fmt::format("cuDNN: {}: {}{}", what, cudnnGetErrorString(status), said()));
}

// Since cuDNN 9.8 descriptors may be of a device that is described; before, they must be of a handle.
#if CUDNN_VERSION >= 90800
constexpr std::optional heuristic_properties = CUDNN_ATTR_ENGINEHEUR_DEVICEPROP;
constexpr std::optional engine_properties = CUDNN_ATTR_ENGINE_DEVICEPROP;
constexpr std::optional plan_properties = CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP;
#else
constexpr std::optional<cudnnBackendAttributeName_t> heuristic_properties, engine_properties, plan_properties;
#endif

Descriptor operation_graph(const Target& target, const std::vector<Descriptor>& operations) {
  std::vector<cudnnBackendDescriptor_t> handles;
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  for (const Descriptor& operation : operations) {
    handles.push_back(operation.handle());
    graph.keep(operation);
  }
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, handles.data(), handles.size());
  target.put(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, std::nullopt);
  graph.finalize("the operation graph");
  return graph;
}

// The heuristic's engine configurations, best first; none where it knows none.
std::vector<Descriptor> configurations(const Target& target, const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode);
  target.put(heuristic, std::nullopt, heuristic_properties);
  if (cudnnBackendFinalize(heuristic.handle()) != CUDNN_STATUS_SUCCESS) return {};
  std::int64_t count = 0;
  cudnnBackendGetAttribute(heuristic.handle(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                           nullptr);
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < count; ++i) {
    found.push_back(Descriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).keep(graph));
    handles.push_back(found.back().handle());
  }
  if (count == 0) return {};
  check_graph(cudnnBackendGetAttribute(heuristic.handle(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                       count, &count, handles.data()),
              "the heuristic's results");
  found.erase(found.begin() + count, found.end());
  return found;
}

// Each engine that takes the graph, with its knobs as they are by default.
std::vector<Descriptor> all_engines(const Target& target, const Descriptor& graph) {
  std::int64_t count = 0, got = 0;
  if (cudnnBackendGetAttribute(graph.handle(), CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1, &got,
                               &count) != CUDNN_STATUS_SUCCESS)
    return {};
  std::vector<Descriptor> found;
  for (std::int64_t index = 0; index < count; ++index) {
    Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
    target.put(engine, std::nullopt, engine_properties);
    if (cudnnBackendFinalize(engine.handle()) != CUDNN_STATUS_SUCCESS) continue;
    Descriptor configuration(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    if (cudnnBackendFinalize(configuration.handle()) == CUDNN_STATUS_SUCCESS) found.push_back(std::move(configuration));
  }
  return found;
}

struct Engine {
  std::int64_t index = -1;
  bool tensor_cores = false, narrows_inputs = false;
};

Engine engine_of(const Descriptor& configuration) {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.handle();
  std::int64_t count = 0;
  check_graph(cudnnBackendGetAttribute(configuration.handle(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &handle),
              "a configuration's engine");
  Engine result;
  cudnnBackendGetAttribute(handle, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &result.index);
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  cudnnBackendGetAttribute(handle, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes.size(), &count,
                           notes.data());
  for (std::int64_t i = 0; i < std::min<std::int64_t>(count, notes.size()); ++i) {
    const auto note = notes[static_cast<std::size_t>(i)];
    result.tensor_cores = result.tensor_cores || note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    result.narrows_inputs = result.narrows_inputs || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
  }
  return result;
}

// None where the engine does not take the graph after all, or takes what is not allowed.
std::shared_ptr<Plan> plan_of(const Target& target, const Descriptor& configuration, const Allowed& allowed) {
  const Engine engine = engine_of(configuration);
  if (engine.narrows_inputs || (engine.tensor_cores && !allowed.tensor_cores)) return nullptr;
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  target.put(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, plan_properties);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (cudnnBackendFinalize(plan.handle()) != CUDNN_STATUS_SUCCESS) return nullptr;
  std::int64_t bytes = 0, count = 0;
  cudnnBackendGetAttribute(plan.handle(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                           &bytes);
  const auto workspace = static_cast<std::size_t>(std::max<std::int64_t>(0, bytes));
  if (allowed.workspace > 0 && workspace > allowed.workspace) return nullptr;
  return std::make_shared<Plan>(std::move(plan), workspace, fmt::format("engine {}", engine.index));
}

}  // namespace

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const void* values,
                            std::size_t count) {
  check_graph(cudnnBackendSetAttribute(state_->handle, name, type, static_cast<std::int64_t>(count), values),
              "an attribute");
  return *this;
}

Descriptor& Descriptor::finalize(const char* what) {
  check_graph(cudnnBackendFinalize(state_->handle), what);
  return *this;
}

Target Target::described(const std::string& json) {
#if CUDNN_VERSION >= 90800
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, json.data(), json.size());
  return Target(properties.finalize("a device's properties"));
#else
  throw Refusal("cuDNN reads descriptions of devices since 9.8");
#endif
}

void Target::put(Descriptor& descriptor, std::optional<cudnnBackendAttributeName_t> handle,
                 std::optional<cudnnBackendAttributeName_t> properties) const {
  if (properties_) {
    if (properties) descriptor.set(*properties, *properties_);
  } else if (handle) {
    descriptor.set(*handle, CUDNN_TYPE_HANDLE, &handle_);
  }
}

cudnnDataType_t data_type(Type type) {
  switch (type) {
    case Type::f32: return CUDNN_DATA_FLOAT;
    case Type::f16: return CUDNN_DATA_HALF;
    case Type::bf16: return CUDNN_DATA_BFLOAT16;
    default: throw Refusal("cuDNN has no such kernel for this element type");
  }
}

Descriptor tensor(std::int64_t id, cudnnDataType_t type, const std::vector<std::int64_t>& extents,
                  const std::vector<std::int64_t>& strides, bool is_virtual, bool by_value, bool summed_into) {
  Descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type).set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents);
  t.set(CUDNN_ATTR_TENSOR_STRIDES, strides).set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16}).set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
  if (by_value) t.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  const auto order = CUDNN_TENSOR_REORDERING_F16x16;
  if (summed_into) t.set(CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE, &order);
  t.finalize("a tensor");
  return t;
}

void Plan::execute(const Libraries& libraries, std::span<const std::int64_t> ids, std::span<void* const> data,
                   void* workspace) const {
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.data(), ids.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, data.data(), data.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &workspace);
  pack.finalize("the operands");
  check_graph(cudnnBackendExecute(libraries.cudnn(), plan_.handle(), pack.handle()), "execution");
}

std::vector<std::shared_ptr<Plan>> plans(const Target& target, const std::vector<Descriptor>& operations,
                                         const Allowed& allowed, bool all) {
  const Descriptor graph = operation_graph(target, operations);
  std::vector<std::shared_ptr<Plan>> found;
  std::string why;  // no engine was taken, as each list's last word
  const auto take = [&](const std::vector<Descriptor>& from) {
    for (const Descriptor& configuration : from) {
      auto plan = plan_of(target, configuration, allowed);
      if (plan) found.push_back(std::move(plan));
      if (!found.empty() && !all) return;
    }
    if (found.empty()) why += said();
  };
  take(configurations(target, graph, CUDNN_HEUR_MODE_INSTANT));
  if (found.empty() || all) take(configurations(target, graph, CUDNN_HEUR_MODE_FALLBACK));
  if (all) {
    take(configurations(target, graph, CUDNN_HEUR_MODE_B));
    take(all_engines(target, graph));
  }
  if (found.empty()) throw Refusal("cuDNN: no engine takes this kernel" + why);
  return found;
}

}  // namespace sibyl::cudnn
