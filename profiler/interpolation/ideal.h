// What a device could do at best with a kernel.
//
// roofline_time is what samples of one device are interpolated relative to. ideal_time carries a kernel from one device
// to another: matrix products, and convolutions as the products that they amount to, run as tiles that multiprocessors
// take in waves, and a last wave that is not full takes as long as a full one. Where the device's multiprocessors are
// not known the two are the same. (Relative to waves, interpolation on one device is no better: which tile a library
// takes is not known, and neighbours show it.)
#pragma once

#include "profiler/device.h"
#include "profiler/kernel_key.h"

namespace sibyl::interpolation {

Seconds roofline_time(const Device& device, const KernelKey& key);
Seconds ideal_time(const Device& device, const KernelKey& key);

}  // namespace sibyl::interpolation
