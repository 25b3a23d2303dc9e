// What the fullest device of a pipeline holds, by formula: the most that there is at any of its turns.
#pragma once

#include <vector>

#include "oracle/closed/schedule_form.h"

namespace sibyl::closed {

// Bytes, without what the framework takes.
double pipeline_memory(const ScheduleShape& shape, const std::vector<StageInPipeline>& stages);

}  // namespace sibyl::closed
