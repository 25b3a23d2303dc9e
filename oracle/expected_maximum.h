// How late the last of several is.
#pragma once

namespace sibyl {

// Expected maximum of p independent standard normal variables (Blom's approximation; 0 for one).
double expected_maximum(int p);

}  // namespace sibyl
