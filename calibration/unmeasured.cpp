#include "calibration/unmeasured.h"

#include <optional>
#include <string>

#include "calibration/device_names.h"

namespace sibyl {

void assume_dispatch(Device& device) {
  if (device.dispatch.value() > 0) return;
  device.dispatch = usual_dispatch;
  device.dispatch_error = usual_dispatch_error;
}

void add_shipped(Calibration& measured) {
  const std::optional<std::string> name = shipped_device(measured.device.name);
  if (!name) return;
  const Result<Calibration> shipped = shipped_calibration(*name);
  if (!shipped) return;
  Device& device = measured.device;
  if (device.architecture.empty()) device.architecture = shipped->device.architecture;
  if (device.multiprocessors == 0) device.multiprocessors = shipped->device.multiprocessors;
  if (!measured.donors.empty()) return;
  measured.donors = shipped->donors;
  measured.donors.insert(measured.donors.begin(), *name);
}

}  // namespace sibyl
