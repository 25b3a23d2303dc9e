#include "oracle/trace/span_words.h"

#include <string>

#include "oracle/plan/names.h"

namespace sibyl {
namespace {

using Arguments = std::vector<TraceArgument>;

void add_certainty(const Estimate& estimate, Arguments& arguments) {
  arguments.push_back({"provenance", std::string(to_string(estimate.provenance))});
  arguments.push_back({"relative_error", estimate.relative_error});
}

std::string category_of(NamedSpan::Kind kind) {
  using enum NamedSpan::Kind;
  switch (kind) {
    case forward: return "forward";
    case backward: return "backward";
    case exchange_forward:
    case exchange_backward:
    case message:
    case gather:
    case unit_copy: return "communication";
    case launch: return "wait";
    case update: return "optimizer";
    case copy:
    case bring_part:
    case leave_kept:
    case bring_kept: return "offload";
  }
  return {};
}

void describe(const std::optional<CollectiveEstimate>& transfer, Arguments& arguments) {
  if (!transfer) return;
  arguments.push_back({"algorithm", std::string(to_string(transfer->algorithm))});
  add_certainty(transfer->time, arguments);
}

void describe(const PricedMessage& message, Arguments& arguments) {
  arguments.push_back({"bytes", message.bytes.value()});
  arguments.push_back({"algorithm", std::string(to_string(message.estimate.algorithm))});
  add_certainty(message.estimate.time, arguments);
}

void describe(const PricedCopy& copy, Arguments& arguments) {
  arguments.push_back({"bytes", copy.bytes.value()});
  add_certainty(copy.estimate, arguments);
}

}  // namespace

TraceSpan SpanWords::written(const NamedSpan& span) const {
  const bool pass = span.kind == NamedSpan::Kind::forward || span.kind == NamedSpan::Kind::backward;
  TraceSpan result{span.name, category_of(span.kind), span.span.start, span.span.end, arguments_of(span)};
  if (pass) result.micro_batch = span.micro_batch;
  return result;
}

SpanWords::Arguments SpanWords::arguments_of(const NamedSpan& span) const {
  using enum NamedSpan::Kind;
  Arguments arguments;
  switch (span.kind) {
    case forward: describe_pass(span, priced_.kernels.steps[span.index].forward, arguments); break;
    case backward: describe_pass(span, priced_.kernels.steps[span.index].backward, arguments); break;
    case exchange_forward: describe(priced_.exchanges[span.index].forward, arguments); break;
    case exchange_backward: describe(priced_.exchanges[span.index].backward, arguments); break;
    case message: describe(priced_.messages[span.index], arguments); break;
    case gather: describe(priced_.unit_gathers[span.index], arguments); break;
    case copy: describe(priced_.copies[span.index], arguments); break;
    case bring_part: describe(priced_.brought[span.index], arguments); break;
    case leave_kept: describe(priced_.kept[span.index].out, arguments); break;
    case bring_kept: describe(priced_.kept[span.index].in, arguments); break;
    case unit_copy:
    case launch:
    case update: break;
  }
  return arguments;
}

void SpanWords::describe_pass(const NamedSpan& span, std::optional<StageKernels::Index> kernel,
                              Arguments& arguments) const {
  arguments.push_back({"kind", std::string(name_of(attributes_of(stage_.steps[span.index])))});
  if (!kernel) return;
  const Work work = work_of(priced_.kernels.keys[*kernel], backend_);
  arguments.push_back({"flops", work.flops.value()});
  arguments.push_back({"bytes", (work.read + work.written).value()});
  arguments.push_back(
      {"bound_by", std::string(priced_.prices[*kernel].bound == Bound::compute ? "compute" : "memory")});
  add_certainty(priced_.prices[*kernel].estimate.time, arguments);
}

}  // namespace sibyl
