// y = (x - mean) / sqrt(var + eps) * scale + shift. 8 FLOPs an element forward (mean 1, variance 3, normalise 2, affine
// 2), 11 backward (two reductions of dy and dy x_hat, then the combination); RMS, without the mean, 5 and 8.
//
// Kept: x, and a mean and reciprocal deviation per channel (batch), per row (layer), per group, or per sample and
// channel (instance, which PyTorch runs as a batch-norm over N*C channels with its scale and shift repeated). RMS is
// composed of ATen calls, unless it is in one kernel: x (of two bytes its copy in f32), the reciprocal of each row, for
// the scale's gradient the normalised x, and on the CPU (libtorch 1.13) x^2, which its mean keeps.
#include "models/training/rules/rules.h"

namespace sibyl::rules {
namespace {

double statistics_count(const Normalization& op, const Context& c) {
  const Shape& x = c.input_shape(0);
  auto extent = [&](std::size_t i) { return i < x.size() ? static_cast<double>(x[i]) : 1.0; };
  double rows = 1;
  switch (op.kind) {
    case NormalizationKind::batch: return extent(1);
    case NormalizationKind::group: return extent(0) * static_cast<double>(op.groups);
    case NormalizationKind::instance: return extent(0) * extent(1);
    case NormalizationKind::layer:
    case NormalizationKind::rms:
      for (std::size_t i = 0; i + static_cast<std::size_t>(op.axes) < x.size(); ++i) rows *= extent(i);
      return rows;
  }
  return rows;
}

// What the kernels read and write for each element that RMS is composed of, as Llama's authors, Hugging Face and
// torchtitan write it: x.float(), its square, their mean, x times its root's reciprocal, x's type again, times the
// scale. Row by row there is next to nothing.
struct ComposedRms {
  double e;  // bytes of x's type
  [[nodiscard]] double cast() const { return e < 4 ? 1 : 0; }
  [[nodiscard]] double reads() const { return cast() * (e + 4) + 3 * 4 + e; }
  [[nodiscard]] double writes() const { return cast() * (4 + e) + 2 * 4 + e; }
  // Of the scale's product (with the scale's gradient, summed over rows behind it), of x times the reciprocal (and of
  // the reciprocal, summed over a row), of the mean, of the square (x to the first, times two, times the gradient),
  // both gradients of x added up, and back.
  [[nodiscard]] double backward_reads(bool scale) const {
    return e + (scale ? 3 * e : 0) + cast() * (e + 4) + 4 + 3 * 4 + 4 * 4 + 2 * 4;
  }
  [[nodiscard]] double backward_writes(bool scale) const {
    return e + (scale ? e : 0) + cast() * (4 + e) + 2 * 4 + 4 + 3 * 4 + 4;
  }
};

}  // namespace

TrainingRule rule(const Normalization& op, const Context& c) {
  const bool rms = op.kind == NormalizationKind::rms, composed = rms && !op.in_one_kernel;
  const double e = c.element(), x = c.in(0), affine = c.in(1) + c.in(2);
  const double running = op.kind == NormalizationKind::batch ? (c.in(3) + c.in(4)) * c.statistic() : 0;
  const double count = statistics_count(op, c), statistics = (rms ? 1 : 2) * count * c.statistic();

  TrainingRule r;
  r.forward = work((rms ? 5 : 8) * x, (x + affine) * e + running, x * e + statistics + running);
  const double affine_gradients = (c.wants(1) ? c.in(1) : 0) + (c.wants(2) ? c.in(2) : 0);
  r.backward = work((rms ? 8 : 11) * x, (2 * x + c.in(1)) * e + statistics, ((c.wants(0) ? x : 0) + affine_gradients) * e);
  if (composed && !c.cpu()) {
    const ComposedRms kernels{e};
    r.forward = work(5 * x, kernels.reads() * x, kernels.writes() * x);
    r.backward = work(8 * x, kernels.backward_reads(c.wants(1)) * x, kernels.backward_writes(c.wants(1)) * x);
  }
  const bool in_full = composed && !c.cpu() && e < 4;
  r.saved = {in_full ? saved_extra(4 * x) : saved_input(0), saved_extra(statistics)};
  const bool instance = op.kind == NormalizationKind::instance;
  if (c.has(1)) r.saved.push_back(instance ? saved_extra(count * c.element()) : saved_input(1));
  if (c.has(2) && op.kind == NormalizationKind::layer) r.saved.push_back(saved_input(2));
  if (composed && c.wants(1)) r.saved.push_back(saved_extra(x * e));
  if (composed && c.cpu()) r.saved.push_back(saved_extra(x * e));
  return r;
}

// A norm whose samples or images ranks share, in its two halves. Mean and variance (4 FLOPs an element, in one
// reading); backward a + b x. Then y = a x + b with a and b of each channel; backward two reductions and dy a. Both
// keep x. One of each sample's groups runs as a batch-norm of N C channels, for which statistics and scale are spread
// out.
TrainingRule rule(const NormStatistics&, const Context& c) {
  const double e = c.element(), x = c.in(0), statistics = c.out() * c.statistic();
  TrainingRule r;
  r.forward = work(4 * x, x * e, statistics);
  r.backward = work(2 * x, x * e + statistics, x * e);
  r.saved = {saved_input(0)};
  return r;
}

TrainingRule rule(const ApplyNorm& op, const Context& c) {
  const double e = c.element(), x = c.in(0), statistics = c.in(1) * c.statistic(), affine = c.in(2) + c.in(3);
  const double running = (c.in(4) + c.in(5)) * c.statistic();
  TrainingRule r;
  r.forward = work(4 * x, x * e + statistics + affine * e + running, x * e + running);
  const double affine_gradients = (c.wants(2) ? c.in(2) : 0) + (c.wants(3) ? c.in(3) : 0);
  r.backward = work(6 * x, (2 * x + c.in(2)) * e + statistics,
                    ((c.wants(0) ? x : 0) + affine_gradients) * e + (c.wants(1) ? statistics : 0));
  r.saved = {saved_input(0)};
  const double channels = static_cast<double>(c.input_shape(0)[0]) * static_cast<double>(c.input_shape(0)[1]);
  r.saved.push_back(op.groups > 0 ? saved_extra(2 * channels * c.statistic()) : saved_input(1));
  if (c.has(2)) r.saved.push_back(op.groups > 0 ? saved_extra(channels * e) : saved_input(2));
  return r;
}

}  // namespace sibyl::rules
