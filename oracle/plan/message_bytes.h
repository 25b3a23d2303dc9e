// How large the message of a transfer is, as CollectiveSample counts it (netmodel/network.h).
#pragma once

#include "base/units.h"
#include "oracle/plan/plan.h"

namespace sibyl {

// Of a transfer that makes a tensor of shape `to` out of `from` among `ways` ranks; 0 where nothing is sent.
Bytes message_bytes(const Transfer& transfer, const LocalTensor& from, const Shape& to, int ways);

}  // namespace sibyl
