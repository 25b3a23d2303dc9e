// What a device could do at best with a kernel.
//
// roofline_time is what samples of one device are interpolated relative to. ideal_time carries a kernel from one device
// to another: matrix products run as tiles that multiprocessors take in waves, and a last wave that is not full takes
// as long as a full one. For all else, and where the device's multiprocessors are not known, the two are the same: of
// convolutions, whose algorithms differ more than their tiles, waves foretell nothing (docs/models/compute.md).
// `clock` is what the device computes at, as a share of the clock that its peaks are stated at; Rates::of_units is what
// it could do if the board slowed no type down (Device::unit_share).
#pragma once

#include "profiler/device.h"
#include "profiler/kernel_key.h"

namespace sibyl::interpolation {

Seconds roofline_time(const Device& device, const KernelKey& key);
enum class Rates { of_board, of_units };
Seconds ideal_time(const Device& device, const KernelKey& key, double clock = 1.0, Rates rates = Rates::of_board);

}  // namespace sibyl::interpolation
