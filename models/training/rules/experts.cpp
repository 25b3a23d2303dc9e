// A mixture of experts. Of each operation's work what grows with the width of tokens is counted, and the numbers that
// say where they go; finding slots sorts T k small integers, and is not.
//
// slots is as large as all experts' capacity, whoever fills it: the products behind compute on empty slots, too.
#include "models/training/rules/rules.h"

namespace sibyl::rules {
// A comparison an element. Backward writes the k gradients into zeros of x's size.
// Of a long row PyTorch finds the k-th value digit by digit, four of 8 bits, each time through all of it, and goes
// through it once more to gather (aten/src/ATen/native/cuda/TensorTopK.cu: mbtopk, from 20,000 elements on).
TrainingRule rule(const TopK&, const Context& c) {
  constexpr double long_row = 20000, digits = 4;
  const double e = c.element(), x = c.in(0), y = c.out(), indices = y * index_bytes;
  const double times = last_extent(c.signature.inputs[0]) >= long_row ? digits + 1 : 1;
  TrainingRule r;
  r.forward = work(x, times * x * e, y * e + indices);
  r.backward = work(0, y * e + indices, x * e);
  r.saved = {saved_output(1)};
  return r;
}

// Rows of x are copied into slots; of each slot the number of its token is kept. Backward adds rows of dslots into
// zeros of x's size.
TrainingRule rule(const Dispatch&, const Context& c) {
  const double e = c.element(), slots = c.out(), rows = slots / last_extent(c.output_shape());
  const double numbers = rows * index_bytes, choices = c.in(1) * index_bytes;
  TrainingRule r;
  r.forward = work(0, slots * e + choices + numbers, slots * e + choices + numbers);
  r.backward = work(slots, slots * e + numbers, c.in(0) * e);
  r.saved = {saved_extra(numbers)};
  return r;
}

// k rows a token, each times its weight. Backward writes dy times the weight into zeros of the slots' size, and each
// weight's gradient is dy times its row.
TrainingRule rule(const Combine&, const Context& c) {
  const double e = c.element(), choices = c.in(1), rows = choices * last_extent(c.output_shape());
  const double slots = c.in(0), places = choices * index_bytes;
  TrainingRule r;
  r.forward = work(2 * rows, rows * e + places + c.in(2) * e, c.out() * e);
  if (c.wants(0)) r.backward = r.backward + work(rows, c.out() * e + places + c.in(2) * e, slots * e);
  if (c.wants(2)) r.backward = r.backward + work(2 * rows, (rows + c.out()) * e + places, c.in(2) * e);
  r.saved = {saved_input(0), saved_input(1), saved_input(2)};
  return r;
}

// E products [C, K] [K, N].
TrainingRule rule(const GroupedLinear&, const Context& c) {
  const double e = c.element(), x = c.in(0), w = c.in(1), y = c.out();
  const double flops = 2 * y * last_extent(c.input_shape(0));
  TrainingRule r;
  r.forward = work(flops, (x + w) * e, y * e);
  if (c.has(2)) r.forward = r.forward + work(y, c.in(2) * e, 0);  // the bias joins in the product's epilogue
  if (c.wants(0)) r.backward = r.backward + work(flops, (y + w) * e, x * e);
  if (c.wants(1)) r.backward = r.backward + work(flops, (y + x) * e, w * e);
  if (c.wants(2)) r.backward = r.backward + work(y, y * e, c.in(2) * e);
  if (c.wants(1)) r.saved.push_back(saved_input(0));
  if (c.wants(0)) r.saved.push_back(saved_input(1));
  return r;
}

}  // namespace sibyl::rules
