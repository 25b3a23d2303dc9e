// How a training step differs from the sum of its measured kernels: caches, clocks and neighbours behave a little
// differently when kernels follow each other than when each is timed alone. Learnt from reference steps that were run
// on the machine (`sibyl validate --reference`); models that predictions are judged on must not be among them.
#pragma once

#include <vector>

#include "calibration/calibration.h"

namespace sibyl {

struct Composition {
  double factor = 1.0;           // a step takes this times the sum of its parts
  double relative_error = 0.10;  // one standard deviation around that
  double spread = 0.0;           // of one rank's steps from run to run, or of devices of one name, relative
  bool measured = false;
};

// Factor: the median of measured over predicted, as far as the samples outweigh what is expected without any: a median
// whose own standard error is s moves the factor from 1 by e^2 / (e^2 + s^2) of its distance, e being the 10 % below
// (the mean of a normal prior's posterior). Error: the root mean square around the median, over n - 1, with what n
// samples can tell: that of the mean is added, and the whole is scaled so that 1.645 of it are Student's 90 %
// prediction interval. Spread: the median. Without at least three samples the factor is 1, the error 10 %, about what
// kernel sums are off by in the literature (NeuSight, ASPLOS'25; vTrain, MICRO'24), and the spread what is known of
// such devices.
Composition composition_of(const std::vector<StepSample>& steps, double between_devices = 0.0);

}  // namespace sibyl
