// A pipeline's schedule in time, as schedule_walk.h has it, without what reports want: when its last coordinate ends.
//
// The order in which turns can be walked depends on the schedule's shape alone, and is kept. Where micro-batches are
// many, the last of them only repeat what others did: then two shorter schedules tell how much a round of them adds.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "oracle/closed/stage_form.h"
#include "oracle/plan/pipeline/schedules.h"

namespace sibyl::closed {

struct StageInPipeline {
  const StageForm* form = nullptr;
  double send_forward = 0, send_backward = 0;  // seconds
};

// A parameter that several stages hold.
struct TiedMessage {
  std::vector<int> stages;
  double seconds = 0;
};

struct ScheduleShape {
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  int coordinates = 1, chunks = 1, micro_batches = 1;
  auto operator<=>(const ScheduleShape&) const = default;
};

class ScheduleForms {
 public:
  struct Ends {
    double time = 0;
    std::size_t slowest = 0;  // coordinate
  };
  Ends ends(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages,
            const std::vector<TiedMessage>& tied);
  // By stage, at most: micro-batches on their way; of these, such whose backward's second part is still to come.
  struct InFlight {
    std::vector<int> all, later;
  };
  const InFlight& in_flight(const ScheduleShape& shape);

 private:
  struct Turn {
    std::uint32_t micro_batch = 0;
    std::uint16_t stage = 0, coordinate = 0;
    sibyl::Turn::Kind kind = sibyl::Turn::Kind::forward;
    std::uint8_t slot = 0;  // of StageForm::backward
    bool last = false;
  };
  struct Known {
    std::vector<Turn> turns;  // in an order in which each follows what it waits for
    InFlight in_flight;
  };
  const Known& known(const ScheduleShape& shape);
  Ends walk(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages,
            const std::vector<TiedMessage>& tied);

  std::map<ScheduleShape, Known> known_;
  std::vector<double> forward_, backward_, free_, channel_forward_, channel_backward_, messages_;  // while walking
};

}  // namespace sibyl::closed
