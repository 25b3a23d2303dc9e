// How copies of a kernel's operands and a buffer share the work of defeating a GPU's cache. A lap over the copies
// touches more memory than twice the cache (what they lack, `padding` makes up before each run), so every copy is cold
// again when its turn comes.
#pragma once

#include "base/units.h"

namespace sibyl::cudnn {

struct Rotation {
  int copies = 1;
  Bytes padding;  // touched before each run
  Bytes lap;      // what one lap touches: copies and padding
};
// All copies together stay below `most_memory`, if one does.
Rotation plan_rotation(Bytes one_copy, Bytes cache, Bytes most_memory);

}  // namespace sibyl::cudnn
