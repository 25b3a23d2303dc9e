// This rank's place in the plan's mesh, and whom it talks to: a communicator for each axis that shares a replica's
// work, one for each exchange of gradients, and a courier to its neighbours in the pipeline, so that these can go on
// beside computation without mixing with it.
#pragma once

#include <torch/types.h>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/courier.h"
#include "oracle/plan/plan.h"

namespace sibyl::trainer {

class MeshGroups {
 public:
  MeshGroups() = default;  // of a rank alone
  // By all ranks of the plan together. Fails, on all of them, where they are not as many as the plan is for.
  static Result<MeshGroups> create(const Plan& plan, const Communicator& world);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int coordinate(MeshAxis axis) const { return mesh_.coordinate(rank_, axis); }
  [[nodiscard]] int size(MeshAxis axis) const { return mesh_.size(axis); }
  // The plan's stages that this rank runs, ascending.
  [[nodiscard]] const std::vector<int>& stages() const { return stages_; }
  // For the computing thread.
  [[nodiscard]] Communicator& axis(MeshAxis axis) const { return *axes_.at(axis); }
  // Of its stage's gradients[index]: the ranks that sum them, where these hold parts those that hold all parts together
  // (shard_group); and those that hold the same part, nullptr where nobody else does (copies_group).
  [[nodiscard]] Communicator& sync(int stage, std::size_t index) const { return *syncs_.at({stage, index}); }
  [[nodiscard]] Communicator* copies(int stage, std::size_t index) const {
    const auto found = copies_.find({stage, index});
    return found == copies_.end() ? nullptr : found->second.get();
  }
  // Of the ranks that hold other gradients (Stage::clip), and other parts of tensors whose norms are taken
  // (Stage::norm_axes); nullptr where there are none.
  [[nodiscard]] Communicator* clip() const { return clip_.get(); }
  [[nodiscard]] Communicator* parts(int stage) const {
    const auto found = parts_.find(stage);
    return found == parts_.end() ? nullptr : found->second.get();
  }
  // Between pipeline coordinates: its ranks are their numbers.
  [[nodiscard]] Courier& courier() const { return *courier_; }
  [[nodiscard]] BytesSent bytes_sent() const;  // over all of them, since construction

  // A tensor that `local` is a part of: its shape, the part of this rank, and all of it again (every rank of the axes
  // that cut it must call).
  [[nodiscard]] Shape whole_shape(const LocalTensor& local) const;
  [[nodiscard]] at::Tensor own_part(at::Tensor whole, const LocalTensor& local) const;
  [[nodiscard]] at::Tensor whole(at::Tensor part, const LocalTensor& local) const;

 private:
  void join_syncs(const Plan& plan, const Communicator& world);

  Mesh mesh_;
  int rank_ = 0;
  std::vector<int> stages_{0};
  std::map<MeshAxis, std::unique_ptr<Communicator>> axes_;
  std::map<std::pair<int, std::size_t>, std::unique_ptr<Communicator>> syncs_, copies_;  // by stage and index
  std::map<int, std::unique_ptr<Communicator>> parts_;                          // by stage
  std::unique_ptr<Communicator> clip_;
  std::unique_ptr<Courier> courier_;                                            // of a pipeline
};

}  // namespace sibyl::trainer
