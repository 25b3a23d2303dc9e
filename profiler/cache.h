// How much cache a core really has. What the machine says of its last level may be a whole socket's, shared with other
// machines on the same host; reading working sets of growing size again and again shows what a core is left of it.
//
// Rates of reading fall in steps, one for each level of the hierarchy, the last to the memory's. A disturbance only
// makes a pass slower, never faster, so the largest working set that is read clearly faster than memory lay in a cache,
// whatever smaller ones were measured to take.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"

namespace sibyl {

// One pass over a working set that is read again and again; the best of several.
struct ReadSample {
  Bytes bytes;
  Seconds time;
};

// A rate within this share of the memory's is the memory's.
inline constexpr double read_margin = 0.25;

// Powers of two from 256 KiB on, and twice what the machine reports: the last cannot lie in any cache.
std::vector<Bytes> working_sets(Bytes reported);

// The smallest size beyond which all rates are within the margin of the memory's, the largest working set's; never more
// than is reported. All that is reported where the sweep cannot tell: no working set is read faster than the last, or
// none is larger than the cache may be. In any order.
Bytes effective_cache(std::span<const ReadSample> sweep, Bytes reported);

// What must pass through the cache between two uses of the same memory so that the second finds nothing of it: twice
// the effective cache, and all that is reported. A cache that is shared and larger than what is left of it keeps some
// of what is used again and again, however much is used once in between.
Bytes out_of_cache(Bytes effective, Bytes reported);

}  // namespace sibyl
