// What the stages of a rank receive from their neighbours in the pipeline and send to them, beside computation.
//
// What a neighbour will send, and in which order, is known from the plan's schedule (oracle/plan/pipeline/arrivals.h),
// so tensors are asked for before they are wanted.
#pragma once

#include <torch/types.h>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "comm/courier.h"
#include "oracle/plan/pipeline/arrivals.h"
#include "oracle/plan/plan.h"
#include "trainer/mesh_groups.h"
#include "trainer/recorder.h"

namespace sibyl::trainer {

class Links {
 public:
  // Of a rank of the plan; both must outlive it. Without a pipeline nothing moves.
  Links(const Plan& plan, const MeshGroups& groups);

  // Around the turns of a step. The second waits until all that was sent has gone.
  void begin_step();
  void end_step();

  // What a turn begins with, waited for: of a forward what its stage receives, of a backward the gradients of what it
  // sent; in the order of the stage's links.
  std::vector<at::Tensor> receive(const Turn& turn);
  // What a turn ends with, for the stage after or before; in the same order.
  void send(const Turn& turn, const std::vector<at::Tensor>& tensors);

  // Tensors are without memory and made so; messages have their size, and zeros in them.
  void emulate(std::function<at::Tensor(const LocalTensor&)> make) { make_ = std::move(make); }

  // Records messages of the steps to come; nullptr: no longer.
  void record(Recorder* recorder) { recorder_ = recorder; }

 private:
  using Message = Arrivals::Message;
  struct Arriving {
    std::vector<at::Tensor> tensors, messages;  // one and the same, unless emulated
    std::vector<Courier::Ticket> tickets;
  };
  // One direction.
  struct Lane {
    Lane(const Plan& plan, int coordinate, int coordinates, Pass direction);
    Pass pass;
    int from, to;  // neighbours
    Arrivals arrivals;
    std::map<Message, Arriving> arriving = {};
    [[nodiscard]] std::size_t number() const { return pass == Pass::forward ? 0 : 1; }
  };
  Lane& lane(const Turn& turn) { return turn.kind == Turn::Kind::forward ? forward_ : backward_; }
  void ask(Lane& lane, const std::vector<Message>& messages);
  void let_go();  // of what has gone: else it would lie there while the next turn computes
  [[nodiscard]] at::Tensor message_for(const LocalTensor& local) const;
  [[nodiscard]] at::Tensor message_of(const at::Tensor& tensor) const;

  const Plan* plan_;
  Courier* courier_ = nullptr;
  Lane forward_, backward_;
  std::deque<std::pair<Courier::Ticket, at::Tensor>> leaving_;
  std::function<at::Tensor(const LocalTensor&)> make_;
  Recorder* recorder_ = nullptr;
};

}  // namespace sibyl::trainer
