// Carrying a kernel's time from the device it was measured on to one where it was not.
//
// time there = time here * ideal time there / ideal time here (ideal.h). How far off that is was measured by hiding
// each device of the shipped calibrations and predicting its samples from the others (docs/validation/kernels.md,
// Kernels of hidden devices); between devices of one architecture, and of different ones. Where a device's silicon is
// also sold on a board of other power and it is known how much power it wants, the ideal times are at the clocks that
// the boards can hold. Where a board slows its units down, they are fed as quickly as elsewhere: times are carried by
// what the units could do, and are no shorter than what the board lets them.
#pragma once

#include "profiler/kernel_table.h"

namespace sibyl::interpolation {

KernelEstimate carried(KernelEstimate estimate, const KernelKey& key, const Device& from, const Device& to);

}  // namespace sibyl::interpolation
