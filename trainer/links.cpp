#include "trainer/links.h"

#include <functional>

#include "aten/device.h"
#include "aten/memory.h"
#include "oracle/plan/names.h"
#include "trainer/tensor_bytes.h"

namespace sibyl::trainer {

Links::Lane::Lane(const Plan& plan, int coordinate, int coordinates, Pass direction)
    : pass(direction),
      from((coordinate + (direction == Pass::forward ? coordinates - 1 : 1)) % coordinates),
      to((coordinate + (direction == Pass::forward ? 1 : coordinates - 1)) % coordinates),
      arrivals(plan, coordinate, direction) {}

Links::Links(const Plan& plan, const MeshGroups& groups)
    : plan_(&plan),
      courier_(groups.size(MeshAxis::pipeline) > 1 ? &groups.courier() : nullptr),
      forward_(plan, groups.coordinate(MeshAxis::pipeline), groups.size(MeshAxis::pipeline), Pass::forward),
      backward_(plan, groups.coordinate(MeshAxis::pipeline), groups.size(MeshAxis::pipeline), Pass::backward) {}

void Links::begin_step() {
  for (Lane* lane : {&forward_, &backward_}) ask(*lane, lane->arrivals.begin());
}

void Links::let_go() {
  while (!leaving_.empty() && courier_->done(leaving_.front().first)) leaving_.pop_front();
}

void Links::end_step() {
  for (; !leaving_.empty(); leaving_.pop_front()) courier_->wait(leaving_.front().first);
}

// Of an emulated device only the tensor counts as memory, not what carries its bytes.
at::Tensor Links::message_for(const LocalTensor& local) const {
  if (!make_) return room_for(local);
  const aten::MemoryMeter::Pause uncounted;
  return room_for(local);
}

void Links::ask(Lane& lane, const std::vector<Message>& messages) {
  for (const Message& message : messages) {
    const Stage& stage = plan_->stages[static_cast<std::size_t>(message.stage)];
    Arriving& arriving = lane.arriving[message];
    for (const LocalTensorId id : arriving_tensors(stage, lane.pass)) {
      arriving.messages.push_back(message_for(stage[id]));
      arriving.tensors.push_back(make_ ? make_(stage[id]) : arriving.messages.back());
      arriving.tickets.push_back(courier_->receive(bytes_of(arriving.messages.back()), lane.from, lane.number()));
    }
  }
}

std::vector<at::Tensor> Links::receive(const Turn& turn) {
  if (courier_ == nullptr) return {};
  let_go();
  if (turn.kind == Turn::Kind::backward_weight) return {};
  Lane& lane = this->lane(turn);
  if (arriving_tensors(plan_->stages[static_cast<std::size_t>(turn.stage)], lane.pass).empty()) return {};
  const Message wanted{turn.stage, turn.micro_batch};
  ask(lane, lane.arrivals.before(wanted));
  for (const Courier::Ticket ticket : lane.arriving[wanted].tickets) courier_->wait(ticket);
  let_go();
  std::vector<at::Tensor> tensors = std::move(lane.arriving.extract(wanted).mapped().tensors);
  if (!make_)
    for (at::Tensor& tensor : tensors) tensor = aten::to_compute_device(tensor);
  ask(lane, lane.arrivals.after(wanted));
  return tensors;
}

at::Tensor Links::message_of(const at::Tensor& tensor) const {
  if (!make_) return aten::to_host(tensor.detach().contiguous());
  const aten::MemoryMeter::Pause uncounted;
  return at::empty(tensor.sizes(), tensor.options().device(at::kCPU).requires_grad(false));
}

void Links::send(const Turn& turn, const std::vector<at::Tensor>& tensors) {
  let_go();
  const Lane& lane = this->lane(turn);
  for (const at::Tensor& tensor : tensors) {
    at::Tensor message = message_of(tensor);
    std::function<void()> record;
    if (Recorder* recorder = recorder_; recorder != nullptr)
      record = [recorder, turn, start = recorder->now(), bytes = static_cast<std::int64_t>(message.nbytes())] {
        recorder->add(Recorder::Track::sends,
                      {send_name(turn), "communication", start, recorder->now(), {{"bytes", bytes}}});
      };
    const Courier::Ticket ticket = courier_->send(bytes_of(message), lane.to, lane.number(), std::move(record));
    leaving_.emplace_back(ticket, std::move(message));
  }
}

}  // namespace sibyl::trainer
