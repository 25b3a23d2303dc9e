// Which machine a rank runs on.
#pragma once

namespace sibyl {

// The same for all that runs on one machine, in namespaces and containers, too, and another on any other; 0 where there
// is no telling.
double machine_number();

}  // namespace sibyl
