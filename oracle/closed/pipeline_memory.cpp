#include "oracle/closed/pipeline_memory.h"

#include <algorithm>

namespace sibyl::closed {
namespace {

// `whole`: micro-batches between their passes; `later`: between the two parts of their backward.
double held(const StageForm& form, int whole, int later) { return whole * form.kept + later * form.later; }

double working(const StageForm& form) { return form.pass - form.kept; }

// A coordinate's only stage. There is most in a pass backward: with what is worked on.
double most_of(const ScheduleShape& shape, int coordinate, const StageForm& form) {
  const int micro_batches = shape.micro_batches, ahead = shape.coordinates - coordinate;
  switch (shape.schedule) {
    case PipelineSchedule::gpipe: return held(form, micro_batches, 0) + working(form);
    case PipelineSchedule::one_forward_one_backward:
    case PipelineSchedule::interleaved: return held(form, std::min(micro_batches, ahead), 0) + working(form);
    case PipelineSchedule::zero_bubble: break;
  }
  // Gradients of weights follow as many backward passes later as the coordinate has before it.
  double most = 0;
  const int last = std::min(coordinate, micro_batches - 1), full = std::clamp(micro_batches - ahead, 0, last);
  for (const int done : {0, full, last}) {
    const int whole = std::min(micro_batches, done + ahead) - done;
    most = std::max({most, held(form, whole, done) + working(form), held(form, whole - 1, done + 1)});
  }
  return most;
}

// A coordinate's stages by turns: with each pass backward there is one forward, until all are done. Once as many
// micro-batches as there are coordinates have gone through all chunks, what there is comes again. `known`: less than
// that is not looked for.
double most_of_interleaved(const ScheduleShape& shape, int coordinate, const std::vector<StageInPipeline>& stages,
                           double known) {
  const int p = shape.coordinates, chunks = shape.chunks, passes = shape.passes();
  const int ahead = std::min(passes, interleaved_warm_up(shape, coordinate) + 1);
  const auto form = [&](int chunk) -> const StageForm& {
    return *stages[static_cast<std::size_t>(chunk * p + coordinate)].form;
  };
  double most_kept = 0, most_working = 0, now = 0, most = 0;
  for (int k = 0; k < chunks; ++k) {
    most_kept = std::max(most_kept, form(k).kept), most_working = std::max(most_working, working(form(k)));
    now += through_chunk(shape, ahead, k) * form(k).kept;
  }
  if (ahead * most_kept + most_working <= known) return 0;
  int forward = ahead, forward_chunk = ahead / p % chunks, in_forward = ahead % p;  // what goes next
  for (int nth = 0, backward = 0; backward < std::min(passes, 2 * p * chunks); nth = (nth + 1) % chunks)
    for (int i = 0; i < p; ++i, ++backward) {
      const StageForm& back = form(chunks - 1 - nth);
      most = std::max(most, now + working(back));
      now -= back.kept;
      if (forward == passes) continue;
      now += form(forward_chunk).kept;
      ++forward;
      if (++in_forward == p) in_forward = 0, forward_chunk = forward_chunk + 1 == chunks ? 0 : forward_chunk + 1;
    }
  return most;
}

}  // namespace

double pipeline_memory(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages) {
  const auto coordinates = static_cast<std::size_t>(shape.coordinates);
  double memory = 0;
  for (std::size_t c = 0; c < coordinates; ++c) {
    double resting = 0, update = 0, forward = 0, backward = 0;
    for (std::size_t s = c; s < stages.size(); s += coordinates) {
      const StageForm& form = *stages[s].form;
      resting += form.state + form.gradients;
      update = std::max(update, form.update);
      forward = std::max(forward, stages[s].arrives_forward);
      backward = std::max(backward, stages[s].arrives_backward);
    }
    // Room for what is waited for next, each way.
    if (shape.passes() > 1) resting += forward + backward;
    const int coordinate = static_cast<int>(c);
    const double passes = shape.schedule == PipelineSchedule::interleaved
                              ? most_of_interleaved(shape, coordinate, stages, memory - resting)
                              : most_of(shape, coordinate, *stages[c].form);
    memory = std::max(memory, resting + std::max(passes, update));
  }
  return memory;
}

}  // namespace sibyl::closed
