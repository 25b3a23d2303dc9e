#include "oracle/closed/schedule_shape.h"

#include <algorithm>

namespace sibyl::closed {

int through_chunk(const ScheduleShape& shape, int x, int nth) {
  const int round = shape.coordinates * shape.chunks;
  return x / round * shape.coordinates + std::clamp(x % round - nth * shape.coordinates, 0, shape.coordinates);
}

int interleaved_warm_up(const ScheduleShape& shape, int coordinate) {
  return (shape.coordinates - coordinate - 1) * 2 + (shape.chunks - 1) * shape.coordinates;
}

namespace {

// After a round's last forward pass through the chunk there are as many as there will be in that round: before, each
// pass forward is followed by one backward at most.
int interleaved_in_flight(const ScheduleShape& shape, int coordinate, int chunk) {
  constexpr int rounds_until_full = 4;  // the first backward pass comes in the third at the latest
  const int round = shape.coordinates * shape.chunks, warm_up = interleaved_warm_up(shape, coordinate);
  int most = 0;
  for (int r = 0; r < std::min(shape.micro_batches / shape.coordinates, rounds_until_full); ++r) {
    const int forward = r * round + (chunk + 1) * shape.coordinates, backward = std::max(0, forward - 1 - warm_up);
    most =
        std::max(most, through_chunk(shape, forward, chunk) - through_chunk(shape, backward, shape.chunks - 1 - chunk));
  }
  return most;
}

}  // namespace

InFlight in_flight(const ScheduleShape& shape) {
  const int stages = shape.coordinates * shape.chunks;
  InFlight result{std::vector<int>(static_cast<std::size_t>(stages), shape.micro_batches),
                  std::vector<int>(static_cast<std::size_t>(stages), 0)};
  for (int s = 0; s < stages; ++s) {
    const int coordinate = s % shape.coordinates;
    int &all = result.all[static_cast<std::size_t>(s)], &later = result.later[static_cast<std::size_t>(s)];
    switch (shape.schedule) {
      case PipelineSchedule::gpipe: break;
      case PipelineSchedule::one_forward_one_backward: all = std::min(all, shape.coordinates - coordinate); break;
      case PipelineSchedule::interleaved: all = interleaved_in_flight(shape, coordinate, s / shape.coordinates); break;
      case PipelineSchedule::zero_bubble:
        later = std::min(all, coordinate + 1);
        all = std::min(all, shape.coordinates);
        break;
    }
  }
  return result;
}

}  // namespace sibyl::closed
