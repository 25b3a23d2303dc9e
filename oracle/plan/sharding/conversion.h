// From the layout a tensor has to the one an operation needs: what moves forward, and what moves backward.
//
//   have      need                     forward         backward        known as
//   whole     whole, partial gradient  -               all-reduce      Megatron's f
//   whole     split                    slice           all-gather
//   split     whole                    all-gather      slice
//   split     whole, partial gradient  all-gather      reduce-scatter  sequence parallelism's g
//   split     split elsewhere          all-to-all      all-to-all
//   split     split in other pieces    all-gather, then slice; backward alike
//   partial   whole                    all-reduce      -               Megatron's g
//   partial   whole, partial gradient  all-reduce      all-reduce
//   partial   split                    reduce-scatter  all-gather      sequence parallelism's conjugate g
//   split     the same, with a halo    halo            halo sum
//   split     the same, ends filled    fill            -
//   whole     whole, own numbers       own numbers     -
//   split     read by all ranks        pass round      sum round       ring attention
//
// Each column is the transpose of the other: a gather's is a scatter, a copy's a sum. What is filled has no gradient.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/dtype.h"
#include "oracle/plan/sharding/layout.h"

namespace sibyl {

enum class Motion {
  none,            // nothing moves, nothing changes
  slice,           // the own part is kept; nothing is sent
  all_gather,      // parts are put together along `dim`
  all_reduce,      // summands are summed
  reduce_scatter,  // summands are summed, the own part is kept
  all_to_all,      // split along `dim`, then along `to`
  halo,            // the neighbours' rows are put beside the own
  halo_sum,        // rows of the halo are added to the neighbours' own
  maximum,         // the greatest over ranks of each element; on every rank
  own_numbers,     // numbers of things become those of the rank's own things (Need); nothing is sent
  fill,            // what lies beyond the end of `dim` is made `value`; nothing is sent
  pass_round,  // each rank's own comes past all others, who read it, while the next operation computes (ring attention)
  sum_round,   // the same once more, and beside it the sum of its gradients, which ends at home
};
std::string_view to_string(Motion motion);

struct Transfer {
  Motion motion = Motion::none;
  std::size_t dim = 0, to = 0;
  Ints pieces, to_pieces;  // of the split along `dim`, and along `to`
  Halo halo;
  std::int64_t surplus = 0;     // of the split along `dim` (Layout)
  std::int64_t numbers_of = 0;  // own_numbers
  double value = 0.0;           // fill
  int ranks = 0;                // between which something goes round, or halos; else not told
  std::optional<DType> type = {};  // of elements on the way, where it is not the tensor's

  bool operator==(const Transfer&) const = default;
};

struct Conversion {
  Transfer forward, backward;
};

// Usually one; more where pieces change or a halo is added, none where the need is met. `gradient`: does one come
// back?
std::vector<Conversion> convert(const Layout& have, const Need& need, bool gradient);

// Elements one rank sends for a transfer of a tensor whose input and output have these shapes, on average over ranks;
// and the elements of the buffer as CollectiveSample counts them. Of a halo: both slabs.
std::int64_t buffer_elements(const Transfer& transfer, const Shape& input, const Shape& output);
double elements_sent(const Transfer& transfer, const Shape& input, const Shape& output, int ways);
// Of a halo: the most that one of `ways` ranks in a line gives. Of two ranks, each has one neighbour, and gives it one
// slab.
std::int64_t halo_elements_given(const Transfer& transfer, const Shape& input, const Shape& output, int ways);

// The parts of this dimension lie one after another in the tensor's memory: they are sent and received where they lie.
bool in_a_row(const Transfer& transfer, const Shape& shape);

// The result takes the place of the operand: nothing moves, or what is sent is put together where it lies.
bool in_place(const Transfer& transfer);

// Elements of the buffers in which a transfer packs what it sends and receives, beside its operand and its result.
std::int64_t packing_elements(const Transfer& transfer, const Shape& input, const Shape& output, int ways);

// The pieces in which a transfer cuts a dimension, or puts it together; none: it does not, or in one.
const Ints& pieces_along(const Transfer& transfer, std::size_t dim);
// These are a row of equal ones, whole numbers of which make each of `ways` parts; and what the transfer then does to
// one of these parts.
bool in_equal_pieces(const Transfer& transfer, std::size_t dim, std::int64_t ways);
Transfer within_part(Transfer transfer, std::size_t dim, std::int64_t ways);

// The shape a transfer makes of `input`.
Shape result_shape(const Transfer& transfer, Shape input, int ways);

}  // namespace sibyl
