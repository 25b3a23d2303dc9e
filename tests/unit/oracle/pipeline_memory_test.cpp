// What a pipeline's devices hold at most, beside a count over all turns of its schedule.
#include "oracle/closed/pipeline_memory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/any_plan.h"

namespace sibyl {
namespace {

using closed::pipeline_memory, closed::StageForm, closed::StageInPipeline;
using Shape = closed::ScheduleShape;

std::vector<StageInPipeline> in_pipeline(const std::vector<StageForm>& forms) {
  std::vector<StageInPipeline> stages;
  for (const StageForm& form : forms) stages.push_back({&form, 0, 0});
  return stages;
}

// Turn by turn.
double counted(const Shape& shape, const std::vector<StageInPipeline>& stages) {
  const Turns turns = make_schedule(shape.schedule, {shape.coordinates, shape.chunks, shape.micro_batches}).value();
  const auto coordinates = static_cast<std::size_t>(shape.coordinates);
  double memory = 0;
  for (std::size_t c = 0; c < coordinates; ++c) {
    double now = 0, most = 0, update = 0, forward = 0, backward = 0, resting = 0;
    for (std::size_t s = c; s < stages.size(); s += coordinates) {
      resting += stages[s].form->state + stages[s].form->gradients;
      update = std::max(update, stages[s].form->update);
      forward = std::max(forward, stages[s].arrives_forward);
      backward = std::max(backward, stages[s].arrives_backward);
    }
    for (const Turn& turn : turns[c]) {
      const StageForm& form = *stages[static_cast<std::size_t>(turn.stage)].form;
      using enum Turn::Kind;
      if (turn.kind == Turn::Kind::forward) now += form.kept;
      if (turn.kind == Turn::Kind::backward || turn.kind == backward_input)
        most = std::max(most, now + form.pass - form.kept), now -= form.kept;
      if (turn.kind == backward_input) now += form.later;
      if (turn.kind == backward_weight) now -= form.later;
      most = std::max(most, now);
    }
    const bool waits = shape.micro_batches * shape.chunks > 1;
    memory = std::max(memory, resting + std::max(most, update) + (waits ? forward + backward : 0.0));
  }
  return memory;
}

RC_GTEST_PROP(PipelineMemory, IsTheMostOfAllTurns, ()) {
  Shape shape;
  shape.schedule = test::one_of(PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward,
                                PipelineSchedule::interleaved, PipelineSchedule::zero_bubble);
  shape.coordinates = test::any(1, 9);
  const bool interleaved = shape.schedule == PipelineSchedule::interleaved;
  if (interleaved) shape.chunks = test::any(2, 5);
  shape.micro_batches = interleaved ? shape.coordinates * test::any(1, 5) : test::any(1, 30);
  std::vector<StageForm> forms(static_cast<std::size_t>(shape.coordinates * shape.chunks));
  const int uneven = test::one_of(0, 1, 100);
  for (StageForm& form : forms) {
    form.kept = 10 + test::any(0, uneven);
    form.later = test::any(0, 2) * 6;
    form.pass = form.kept + test::any(0, 3 * uneven);
    form.state = test::any(0, uneven), form.gradients = test::any(0, uneven), form.update = test::any(0, 10 * uneven);
  }
  std::vector<StageInPipeline> stages = in_pipeline(forms);
  for (StageInPipeline& stage : stages)
    stage.arrives_forward = test::any(0, uneven), stage.arrives_backward = test::any(0, uneven);
  RC_ASSERT(std::abs(pipeline_memory(shape, stages) / counted(shape, stages) - 1) < 1e-12);
}

// Two devices with two stages each and four micro-batches. Before its first pass backward the first device goes forward
// with two micro-batches through both its stages and with one more: five. Its first stage has four at most and its
// second two, but not at once.
TEST(PipelineMemory, OfInterleavedStagesIsNotTheSumOfEachOnesMost) {
  const Shape shape{PipelineSchedule::interleaved, 2, 2, 4};
  std::vector<StageForm> forms(4);
  for (StageForm& form : forms) form.kept = form.pass = 1;
  EXPECT_EQ(pipeline_memory(shape, in_pipeline(forms)), 5);
  EXPECT_EQ(closed::in_flight(shape).all, (std::vector<int>{4, 3, 2, 1}));  // of each by itself
}

// Zero-bubble on three devices, where the gradients of weights need a third of what was kept. While the last device
// goes backward with its third micro-batch, what two before it left for these is there yet: 3 and twice 1.
TEST(PipelineMemory, OfZeroBubbleHasWhatGradientsOfWeightsNeed) {
  const Shape shape{PipelineSchedule::zero_bubble, 3, 1, 8};
  std::vector<StageForm> forms(3);
  for (StageForm& form : forms) form.kept = form.pass = 3, form.later = 1;
  EXPECT_EQ(pipeline_memory(shape, in_pipeline(forms)), 9);
  forms[2].state = 100;
  EXPECT_EQ(pipeline_memory(shape, in_pipeline(forms)), 105);
}

}  // namespace
}  // namespace sibyl
