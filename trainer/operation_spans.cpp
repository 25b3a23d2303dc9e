#include "trainer/operation_spans.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <utility>

#include "oracle/plan/names.h"

namespace sibyl::trainer {
namespace {

thread_local OperationSpans* watching = nullptr;

}  // namespace

void backward_node_begins(OperationSpans& spans, std::uint64_t number) {
  const auto after = std::ranges::upper_bound(spans.made_, number, {}, &OperationSpans::Made::first);
  if (after == spans.made_.begin()) return;
  const OperationSpans::Made& made = *std::prev(after);
  if (number >= made.last) return;  // of no operation: it counts for the one that ran before it
  if (spans.backward_ && spans.backward_->step == made.step && spans.backward_->micro_batch == made.micro_batch) return;
  spans.end_backward();
  spans.backward_ = OperationSpans::Running{made.step, made.micro_batch, spans.recorder_.now()};
}

namespace {

// Accumulators of leaves have no number of their own (-1).
std::unique_ptr<at::ObserverContext> node_begins(const at::RecordFunction& node) {
  if (watching != nullptr && node.seqNr() >= 0)
    backward_node_begins(*watching, static_cast<std::uint64_t>(node.seqNr()));
  return nullptr;
}

}  // namespace

OperationSpans::OperationSpans(const Graph& graph, const Stage& stage, Recorder& recorder)
    : graph_(graph), stage_(stage), recorder_(recorder) {
  callback_ =
      at::addThreadLocalCallback(at::RecordFunctionCallback(node_begins).scopes({at::RecordScope::BACKWARD_FUNCTION}));
}

OperationSpans::~OperationSpans() {
  at::removeCallback(callback_);
  if (watching == this) watching = nullptr;
}

void OperationSpans::begin_turn(const Turn& turn) {
  turn_ = turn;
  watching = this;
}

void OperationSpans::begin_forward() {
  first_node_ = at::sequence_number::peek();
  forward_start_ = recorder_.now();
}

void OperationSpans::end_forward(std::size_t step) {
  add(Turn::Kind::forward, {step, turn_.micro_batch, forward_start_});
  const std::uint64_t next = at::sequence_number::peek();
  if (next > first_node_) made_.push_back({first_node_, next, step, turn_.micro_batch});
}

void OperationSpans::end_backward() {
  if (backward_) add(turn_.kind, *backward_);
  backward_.reset();
}

void OperationSpans::add(Turn::Kind kind, const Running& operation) {
  const Step& step = stage_.steps[operation.step];
  const auto* compute = std::get_if<Compute>(&step);
  TraceSpan span{pass_name(graph_, stage_, step, kind),
                 std::string(compute ? to_string(kind) : "communication"),
                 operation.start,
                 recorder_.now(),
                 {{"kind", std::string(compute ? name_of(compute->attributes) : "exchange")}}};
  span.micro_batch = operation.micro_batch;
  recorder_.add(compute ? Recorder::Track::compute : Recorder::Track::communication, std::move(span));
}

}  // namespace sibyl::trainer
