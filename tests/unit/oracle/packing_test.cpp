#include "oracle/cost/packing.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "models/operations/operations.h"

namespace sibyl {
namespace {

Transfer moved(Motion motion, std::size_t dim = 0, std::size_t to = 0) {
  Transfer transfer;
  transfer.motion = motion, transfer.dim = dim, transfer.to = to;
  return transfer;
}

std::string packing(const Transfer& transfer, Shape in, Shape out, Backend backend = Backend::cpu) {
  LocalTensor from, to;
  from.shape = std::move(in), to.shape = std::move(out);
  const std::optional<Signature> signature = packing_of(transfer, from, to, backend);
  return signature ? to_string(*signature) : "";
}

// Eight images of 6 channels and 2 x 5 pixels: the channels of an image are shared.
TEST(PackingOf, WhatLiesApartIsCopiedWholeAndTheOwnPart) {
  EXPECT_EQ(packing(moved(Motion::all_gather, 1), {8, 3, 2, 5}, {8, 6, 2, 5}),
            "packing(together=1)[8x3x10]->[8x6x10]:f32");
  EXPECT_EQ(packing(moved(Motion::reduce_scatter, 1), {8, 6, 2, 5}, {8, 2, 2, 5}),
            "packing(ways=3,apart=1)[8x6x10]->[8x2x10]:f32");
}

TEST(PackingOf, WhatLiesInARowIsCopiedAsFarAsItIsTheRanksOwn) {
  EXPECT_EQ(packing(moved(Motion::all_gather, 0), {4, 3}, {8, 3}), "copy[4x3]->[4x3]:f32");
  EXPECT_EQ(packing(moved(Motion::reduce_scatter, 1), {1, 6, 5}, {1, 3, 5}), "copy[1x3x5]->[1x3x5]:f32");
}

// Columns of queries, keys and values, each shared by itself; 7 columns between two ranks, the last of which has 3.
TEST(PackingOf, PiecesAndWhatDoesNotDivide) {
  Transfer pieces = moved(Motion::all_gather, 1);
  pieces.pieces = {4, 4, 4};
  EXPECT_EQ(packing(pieces, {8, 6}, {8, 12}), "packing(together=1,together_pieces=4x4x4)[8x6x1]->[8x12x1]:f32");
  Transfer beyond = moved(Motion::all_gather, 1);
  beyond.surplus = 1;
  EXPECT_EQ(packing(beyond, {8, 4}, {8, 7}), "packing(together=1)[8x4x1]->[8x8x1]:f32");
  beyond.motion = Motion::reduce_scatter;
  EXPECT_EQ(packing(beyond, {8, 7}, {8, 4}), "packing(apart=1)[8x8x1]->[8x4x1]:f32");
}

// A rank gives rows of all columns for columns of all rows.
TEST(PackingOf, WhatIsExchangedIsTakenApartAndPutTogether) {
  EXPECT_EQ(packing(moved(Motion::all_to_all, 1, 0), {8, 3}, {2, 12}),
            "packing(ways=4,apart=0,together=1)[8x3]->[2x12]:f32");
}

// Rows of images shared, and columns; of three ranks one has two neighbours.
TEST(PackingOf, HalosAreRowsBesideTheOwn) {
  Transfer halo = moved(Motion::halo, 2);
  halo.halo = {1, 2, 0.0}, halo.ranks = 2;
  EXPECT_EQ(packing(halo, {8, 3, 4, 6}, {8, 3, 7, 6}), "halo_packing(before=1,after=2)[24x4x6]->[24x7x6]:f32");
  halo.dim = 3, halo.ranks = 3;
  EXPECT_EQ(packing(halo, {8, 3, 4, 6}, {8, 3, 4, 9}), "halo_packing(before=1,after=2,middle=1)[96x6x1]->[96x9x1]:f32");
  halo.motion = Motion::halo_sum;
  EXPECT_EQ(packing(halo, {8, 3, 4, 9}, {8, 3, 4, 6}),
            "halo_packing(before=1,after=2,sums=1,middle=1)[96x9x1]->[96x6x1]:f32");
  EXPECT_EQ(packing(halo, {8, 3, 4, 9}, {8, 3, 4, 6}, Backend::cuda), "copy[8x3x4x6]->[8x3x4x6]:f32");
}

TEST(PackingOf, SumsAreTakenWhereTheyLie) {
  EXPECT_EQ(packing(moved(Motion::all_reduce), {8, 3}, {8, 3}), "");
  EXPECT_EQ(packing(moved(Motion::none), {8, 3}, {8, 3}), "");
}

// NCCL's time has a rank's own part in it.
TEST(PackingOf, OnGpusTheLargerSideIsCopied) {
  EXPECT_EQ(packing(moved(Motion::all_gather, 1), {8, 3}, {8, 6}, Backend::cuda), "copy[8x6]->[8x6]:f32");
  EXPECT_EQ(packing(moved(Motion::reduce_scatter, 1), {8, 6}, {8, 3}, Backend::cuda), "copy[8x6]->[8x6]:f32");
  EXPECT_EQ(packing(moved(Motion::all_gather, 0), {4, 3}, {8, 3}, Backend::cuda), "");
}

}  // namespace
}  // namespace sibyl
