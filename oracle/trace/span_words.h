// What a span of a timeline says of itself: category, work, bytes, algorithm, and how its time is known.
#pragma once

#include <optional>
#include <vector>

#include "base/trace.h"
#include "oracle/cost/price.h"
#include "oracle/plan/plan.h"
#include "oracle/simulate/step.h"

namespace sibyl {

class SpanWords {
 public:
  // Of one stage's spans; both must outlive it.
  SpanWords(const Stage& stage, const PricedStage& priced, Backend backend)
      : stage_(stage), priced_(priced), backend_(backend) {}

  [[nodiscard]] TraceSpan written(const NamedSpan& span) const;

 private:
  using Arguments = std::vector<TraceArgument>;
  [[nodiscard]] Arguments arguments_of(const NamedSpan& span) const;
  void describe_pass(const NamedSpan& span, std::optional<StageKernels::Index> kernel, Arguments& arguments) const;

  const Stage& stage_;
  const PricedStage& priced_;
  Backend backend_;
};

}  // namespace sibyl
