// Whether ranks hold the same parameters: what they hold is hashed and the hashes compared.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "aten/device.h"
#include "trainer/random.h"
#include "trainer/session.h"

namespace sibyl::trainer {
namespace {

std::uint64_t hash_of(const at::Tensor& value, std::uint64_t hash) {
  if (value.is_meta()) return hash;  // of an emulated device: there is nothing that could differ
  const at::Tensor tensor = aten::to_host(value.detach().contiguous());
  const auto* bytes = static_cast<const char*>(tensor.data_ptr());
  for (std::size_t at = 0; at + 4 <= tensor.nbytes(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes + at, sizeof word);
    hash = mixed(hash ^ word);
  }
  return hash;
}

// What is compared at once: parameters cut alike that the same stages hold.
struct Holding {
  std::vector<int> stages;
  std::vector<MeshAxis> cut_by;
  auto operator<=>(const Holding&) const = default;
};

// Of each stage, by the tensor of the graph: in the same order on every stage that holds them.
using Parameters = std::map<Holding, std::map<TensorId, LocalTensorId>>;

std::vector<MeshAxis> axes_of(const LocalTensor& local) {
  std::vector<MeshAxis> axes;
  for (const PartOf& cut : local.cuts) axes.push_back(cut.axis);
  return axes;
}

std::vector<Parameters> parameters_of(const Plan& plan) {
  std::map<std::pair<TensorId, std::vector<MeshAxis>>, std::vector<int>> holders;
  const auto each = [&](auto&& visit) {
    for (std::size_t s = 0; s < plan.stages.size(); ++s)
      for (std::size_t t = 0; t < plan.stages[s].tensors.size(); ++t)
        if (plan.stages[s].tensors[t].kind == TensorKind::parameter) visit(s, LocalTensorId{t});
  };
  each([&](std::size_t s, LocalTensorId id) {
    const LocalTensor& local = plan.stages[s][id];
    holders[{local.origin, axes_of(local)}].push_back(static_cast<int>(s));
  });
  std::vector<Parameters> result(plan.stages.size());
  each([&](std::size_t s, LocalTensorId id) {
    const LocalTensor& local = plan.stages[s][id];
    const std::vector<MeshAxis> axes = axes_of(local);
    result[s][{holders[{local.origin, axes}], axes}][local.origin] = id;
  });
  return result;
}

}  // namespace

// All ranks go through all that any stage holds, so that they gather alike.
bool Session::replicas_agree() {
  const std::vector<Parameters> parameters = parameters_of(*plan_);
  std::set<Holding> all;
  for (const Parameters& of_stage : parameters)
    for (const auto& [holding, ids] : of_stage) all.insert(holding);
  bool agree = true;
  for (const Holding& holding : all) {
    std::uint64_t hash = 0;
    for (const int s : holding.stages)
      if (StageWorker* own = worker(s); own != nullptr)
        for (const auto& [origin, id] : parameters[static_cast<std::size_t>(s)].at(holding))
          hash = hash_of(own->replica()[id], hash);
    const std::vector<double> hashes =
        communicator_->gather_doubles(static_cast<double>(hash >> 11));  // exact in a double
    std::map<std::vector<int>, double> first;  // by the coordinates that say which part a rank has
    for (int rank = 0; rank < communicator_->size(); ++rank) {
      const int coordinate = plan_->mesh.coordinate(rank, MeshAxis::pipeline);
      const int coordinates = plan_->mesh.size(MeshAxis::pipeline);
      if (std::ranges::none_of(holding.stages, [&](int s) { return s % coordinates == coordinate; })) continue;
      std::vector<int> part;
      for (const MeshAxis axis : holding.cut_by) part.push_back(plan_->mesh.coordinate(rank, axis));
      const double its = hashes[static_cast<std::size_t>(rank)];
      agree = agree && first.try_emplace(part, its).first->second == its;
    }
  }
  return agree;
}

}  // namespace sibyl::trainer
