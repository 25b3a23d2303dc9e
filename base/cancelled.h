// How work asks whether its result is still wanted: now and then, from whatever thread it runs in. Empty: it always is.
// Once true it stays so, and what has begun ends as soon as it can, with interrupted().
#pragma once

#include <functional>

#include "base/result.h"

namespace sibyl {

using Cancelled = std::function<bool()>;

inline bool is_true(const Cancelled& cancelled) { return cancelled && cancelled(); }
inline Failure interrupted() { return fail(ErrorCode::interrupted, "interrupted"); }

}  // namespace sibyl
