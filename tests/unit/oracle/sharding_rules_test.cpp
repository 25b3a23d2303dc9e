// What sharding is made of, piece by piece: halos, layouts, conversions between them, and the rules of operations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/plan/plan.h"
#include "oracle/plan/sharding/rules/rules.h"

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Window, HaloOfConvolutionsAndPools) {
  using sharding::halo_of;
  EXPECT_EQ(halo_of({3, 1, 1, 1, 1}, 56, 56, 2, 0.0), (Halo{1, 1, 0.0}));
  EXPECT_EQ(halo_of({3, 1, 2, 2, 2}, 56, 56, 2, 0.0), (Halo{2, 2, 0.0}));  // dilated: 2 (k - 1) + 1 = 5 rows
  EXPECT_EQ(halo_of({2, 2, 1, 0, 0}, 56, 28, 4, 0.0), (Halo{}));           // windows do not overlap
  EXPECT_EQ(halo_of({1, 2, 1, 0, 0}, 56, 28, 2, 0.0), (Halo{}));           // the last row is not even read
  EXPECT_EQ(halo_of({11, 4, 1, 2, 2}, 224, 55, 2, 0.0), std::nullopt);     // parts do not line up
  EXPECT_EQ(halo_of({7, 1, 1, 3, 3}, 8, 8, 4, 0.0), std::nullopt);         // the neighbour has only 2 rows
  EXPECT_EQ(halo_of({3, 1, 1, 1, 1}, 7, 7, 2, 0.0), std::nullopt);         // odd
}

// Kernel 2 and stride 2 make two rows of each: no halo. 3 and 2, padded by 1 (and 1 more at the end): results 2 i - 1
// to 2 i + 1 of row i, so that the last own result needs the row after. 4 and 2, padded by 1: 2 i - 1 to 2 i + 2, so
// that the first needs the row before, too. Unpadded, 4 and 2 need the row before alone: 2 i to 2 i + 3.
TEST(Window, HaloOfTransposedConvolutions) {
  using sharding::halo_of_transposed;
  EXPECT_EQ(halo_of_transposed({2, 2, 1, 0, 0}, 8, 16, 4), (Halo{}));
  EXPECT_EQ(halo_of_transposed({3, 2, 1, 1, 1}, 8, 16, 4), (Halo{0, 1}));
  EXPECT_EQ(halo_of_transposed({4, 2, 1, 1, 1}, 8, 16, 4), (Halo{1, 1}));
  EXPECT_EQ(halo_of_transposed({4, 2, 1, 0, 2}, 8, 16, 4), (Halo{1, 0}));
  EXPECT_EQ(halo_of_transposed({3, 2, 1, 0, 0}, 8, 17, 4), std::nullopt) << "results are not twice the rows";
  EXPECT_EQ(halo_of_transposed({2, 2, 1, 0, 0}, 7, 14, 2), std::nullopt) << "odd";
  EXPECT_EQ(halo_of_transposed({9, 2, 1, 1, 8}, 8, 16, 4), std::nullopt) << "needs 3 rows, the neighbour has 2";
}

// Each row of the table in conversion.h.
TEST(Conversion, BackwardIsTheTransposeOfForward) {
  const auto motions = [](const Layout& have, const Need& need) {
    std::string text;
    for (const Conversion& c : convert(have, need, true))
      text += std::string(to_string(c.forward.motion)) + "/" + std::string(to_string(c.backward.motion)) + " ";
    return text;
  };
  const Layout whole = Layout::whole(), split = Layout::split(1), partial = Layout::partial(1);
  const Need sum = {whole, true, {}};
  EXPECT_EQ(motions(whole, {whole, false, {}}), "");
  EXPECT_EQ(motions(whole, sum), "none/all-reduce ");
  EXPECT_EQ(motions(whole, {split, false, {}}), "slice/all-gather ");
  EXPECT_EQ(motions(split, {split, false, {}}), "");
  EXPECT_EQ(motions(split, {whole, false, {}}), "all-gather/slice ");
  EXPECT_EQ(motions(split, sum), "all-gather/reduce-scatter ");
  EXPECT_EQ(motions(split, {Layout::split(2), false, {}}), "all-to-all/all-to-all ");
  EXPECT_EQ(motions(partial, {whole, false, {}}), "all-reduce/none ");
  EXPECT_EQ(motions(partial, sum), "all-reduce/all-reduce ");
  EXPECT_EQ(motions(partial, {split, false, {}}), "reduce-scatter/all-gather ");
  EXPECT_EQ(motions(split, {split, false, {1, 1, 0.0}}), "halo/halo sum ");
  EXPECT_EQ(motions(whole, {split, false, {1, 1, 0.0}}), "slice/all-gather halo/halo sum ");
  EXPECT_EQ(motions(whole, {whole, false, {}, 5}), "own numbers/none ");
  EXPECT_EQ(motions(split, {split, false, {}, 0, 1.0}), "fill/none ");
  EXPECT_EQ(motions(Layout::rounded_up(1, 2), {Layout::split(2), false, {}}), "all-gather/slice slice/all-gather ")
      << "unequal parts are put together first";
  EXPECT_TRUE(convert(whole, sum, false).empty()) << "no gradient, nothing to sum";
}

// 10 in 4 parts are 3, 3, 3 and 1: rounded up to 12. 4 rows of it travel as 4 x 12.
TEST(Layout, RoundsUpToEqualParts) {
  const Layout layout = Layout::rounded_up(1, surplus_of(10, 4));
  EXPECT_EQ(layout.surplus, 2);
  EXPECT_TRUE(divides({4, 10}, layout, 4));
  EXPECT_FALSE(divides({4, 10}, Layout::split(1), 4));
  EXPECT_EQ(part_of({4, 10}, layout, 4), (Shape{4, 3}));
  const Conversion gather = convert(layout, {}, true).at(0);
  EXPECT_EQ(result_shape(gather.forward, {4, 3}, 4), (Shape{4, 10}));
  EXPECT_EQ(result_shape(gather.backward, {4, 10}, 4), (Shape{4, 3}));
  EXPECT_EQ(buffer_elements(gather.forward, {4, 3}, {4, 10}), 48);
  EXPECT_EQ(surplus_of(12, 4), 0);
}

// Rules follow what arrives. `ways` 2 throughout.
class Rules : public testing::Test {
 protected:
  template <class Op>
  std::vector<std::string> outputs(const Op& op, std::vector<Shape> in, std::vector<Shape> out,
                                   std::vector<std::optional<Layout>> arriving) {
    const Operands o{in, out, arriving, 2, {}, std::vector<bool>(in.size(), true)};
    std::vector<std::string> result;
    for (const Variant& v : sharding::variants(op, o)) {
      std::string text;
      for (const Need& need : v.inputs) text += to_string(need.layout) + (need.partial_gradient ? "*, " : ", ");
      result.push_back(text + "-> " + to_string(v.outputs.at(0)));
    }
    return result;
  }
  const std::optional<Layout> whole_ = Layout::whole(), first_ = Layout::split(0), second_ = Layout::split(1),
                              third_ = Layout::split(2);
};

TEST_F(Rules, BroadcastOperandsStayWhole) {
  EXPECT_THAT(outputs(Binary{}, {{2, 4, 6}, {6}}, {{2, 4, 6}}, {second_, whole_}),
              ElementsAre("split 1, whole*, -> split 1"));
  EXPECT_THAT(outputs(Binary{}, {{2, 4, 6}, {6}}, {{2, 4, 6}}, {third_, whole_}),
              ElementsAre("split 2, split 0, -> split 2"));
  EXPECT_THAT(outputs(Binary{}, {{2, 4, 6}, {2, 4, 6}}, {{2, 4, 6}}, {whole_, whole_}), IsEmpty());
}

// 12 heads of 64 are the outer part of 768 features, so a part of the features is a part of the heads; a part of the 64
// is not a part of the 768.
TEST_F(Rules, ReshapeKeepsTheOutermostOfAGroup) {
  EXPECT_THAT(outputs(Reshape{}, {{4, 16, 768}}, {{4, 16, 12, 64}}, {third_}), ElementsAre("split 2, -> split 2"));
  EXPECT_THAT(outputs(Reshape{}, {{4, 16, 12, 64}}, {{4, 16, 768}}, {Layout::split(3)}), IsEmpty());
  EXPECT_THAT(outputs(Reshape{}, {{4, 8, 5, 5}}, {{4, 200}}, {second_}), ElementsAre("split 1, -> split 1"));
  EXPECT_THAT(outputs(Reshape{}, {{4, 8, 6, 6}}, {{4, 288}}, {third_}), IsEmpty());
}

TEST_F(Rules, ConcatenatedPartsAreAPartByPieces) {
  EXPECT_THAT(outputs(Concat{1}, {{2, 4}, {2, 6}}, {{2, 10}}, {second_, whole_}),
              ElementsAre("split 1, split 1, -> split 1 of 4+6"));
  EXPECT_THAT(outputs(Concat{1}, {{2, 4}, {2, 6}}, {{2, 10}}, {first_, whole_}),
              ElementsAre("split 0, split 0, -> split 0"));
}

TEST_F(Rules, SplitComesApartWhereItsPiecesDo) {
  const std::vector<Shape> out = {{2, 4}, {2, 6}};
  EXPECT_THAT(outputs(Split{1, {4, 6}}, {{2, 10}}, out, {Layout::split(1, {4, 6})}),
              ElementsAre("split 1 of 4+6, -> split 1"));
  EXPECT_THAT(outputs(Split{1, {4, 6}}, {{2, 10}}, out, {second_}), IsEmpty());
}

// Queries, keys and values of 4 heads of 64, by a part of each: heads, behind a dimension of three; or slices of whole
// ones.
TEST_F(Rules, PartsOfPiecesArePartsOfWhatAPieceBecomes) {
  const std::optional<Layout> joint = Layout::split(2, {256, 256, 256});
  EXPECT_THAT(outputs(Reshape{}, {{4, 16, 768}}, {{4, 16, 3, 4, 64}}, {joint}),
              ElementsAre("split 2 of 256+256+256, -> split 3"));
  EXPECT_THAT(outputs(Reshape{}, {{4, 16, 768}}, {{4, 16, 4, 3, 64}}, {joint}), IsEmpty()) << "heads of all three";
  EXPECT_THAT(outputs(Slice{{2}, {0}, {256}, {1}}, {{4, 16, 768}}, {{4, 16, 256}}, {joint}),
              ElementsAre("split 2 of 256+256+256, -> split 2"));
  EXPECT_THAT(outputs(Slice{{2}, {256}, {768}, {1}}, {{4, 16, 768}}, {{4, 16, 512}}, {joint}),
              ElementsAre("split 2 of 256+256+256, -> split 2 of 256+256"));
  EXPECT_THAT(outputs(Slice{{2}, {0}, {300}, {1}}, {{4, 16, 768}}, {{4, 16, 300}}, {joint}), IsEmpty());
  EXPECT_THAT(outputs(Slice{{1}, {0}, {8}, {1}}, {{4, 16, 768}}, {{4, 8, 768}}, {joint}),
              ElementsAre("split 2 of 256+256+256, -> split 2 of 256+256+256"));
}

// Of operations whose own files say where ranks need nothing of each other: all operands alike, and none that is longer.
TEST_F(Rules, OwnFilesSayWhichDimensionsAreIndependent) {
  EXPECT_THAT(outputs(RunningSum{1}, {{2, 4}}, {{2, 4}}, {first_}), ElementsAre("split 0, -> split 0"));
  EXPECT_THAT(outputs(RunningSum{1}, {{2, 4}}, {{2, 4}}, {second_}), IsEmpty());
  EXPECT_THAT(outputs(GatherElements{1}, {{2, 4}, {2, 3}}, {{2, 3}}, {first_, whole_}),
              ElementsAre("split 0, split 0, -> split 0"));
  EXPECT_THAT(outputs(GatherElements{1}, {{2, 4}, {2, 3}}, {{2, 3}}, {whole_, second_}), IsEmpty());
  EXPECT_THAT(outputs(GatherElements{1}, {{6, 4}, {2, 3}}, {{2, 3}}, {whole_, first_}), IsEmpty());
}

TEST_F(Rules, ContractedDimensionsLeaveSummands) {
  EXPECT_THAT(outputs(MatMul{}, {{2, 3, 4}, {2, 4, 6}}, {{2, 3, 6}}, {third_, whole_}),
              ElementsAre("split 2, split 1, -> partial"));
  EXPECT_THAT(outputs(MatMul{}, {{2, 3, 4}, {4, 6}}, {{2, 3, 6}}, {first_, whole_}),
              ElementsAre("split 0, whole*, -> split 0"));
  EXPECT_THAT(outputs(MatMul{}, {{2, 3, 4}, {2, 4, 6}}, {{2, 3, 6}}, {whole_, third_}),
              ElementsAre("whole*, split 2, -> split 2"));
}

// Keys' places decide what a causal query may see, so its sequence is not split.
TEST_F(Rules, AttentionSharesHeadsAndQueries) {
  const std::vector<Shape> in(3, Shape{2, 4, 8, 16}), out = {{2, 4, 8, 16}};
  EXPECT_THAT(outputs(Attention{}, in, out, {second_, second_, second_}),
              ElementsAre("split 1, split 1, split 1, -> split 1"));
  EXPECT_THAT(outputs(Attention{}, in, out, {third_, whole_, whole_}),
              ElementsAre("split 2, whole*, whole*, -> split 2"));
  EXPECT_THAT(outputs(Attention{true}, in, out, {third_, whole_, whole_}), IsEmpty());
}

TEST_F(Rules, NormalisationsWantTheirStatisticsWhole) {
  Normalization layer{NormalizationKind::layer};
  EXPECT_THAT(outputs(layer, {{2, 4, 8}, {8}, {8}}, {{2, 4, 8}}, {second_, whole_, whole_}),
              ElementsAre("split 1, whole*, whole*, -> split 1"));
  EXPECT_THAT(outputs(layer, {{2, 4, 8}, {8}, {8}}, {{2, 4, 8}}, {third_, whole_, whole_}), IsEmpty());
  EXPECT_THAT(outputs(Normalization{}, {{2, 4, 8, 8}, {4}, {4}}, {{2, 4, 8, 8}}, {second_, whole_, whole_}),
              ElementsAre("split 1, split 0, split 0, -> split 1"));
}

// Of a sample's own statistics those of its image are shared; samples and whole groups are independent.
TEST_F(Rules, InstanceAndGroupNormsShareTheirStatistics) {
  const std::vector<Shape> in = {{2, 4, 6, 8}, {4}, {4}}, out = {{2, 4, 6, 8}};
  const Normalization instance{NormalizationKind::instance}, groups{NormalizationKind::group, 1, 2},
      odd{NormalizationKind::group, 1, 1};
  const auto by_channel = ElementsAre("split 1, split 0, split 0, -> split 1");
  const auto by_image = ElementsAre("split 2, whole*, whole*, -> split 2");
  EXPECT_THAT(outputs(instance, in, out, {third_, whole_, whole_}), by_image);
  EXPECT_THAT(outputs(groups, in, out, {third_, whole_, whole_}), by_image);
  EXPECT_THAT(outputs(groups, in, out, {first_, whole_, whole_}), ElementsAre("split 0, whole*, whole*, -> split 0"));
  EXPECT_THAT(outputs(instance, in, out, {second_, whole_, whole_}), by_channel);
  EXPECT_THAT(outputs(groups, in, out, {second_, whole_, whole_}), by_channel);
  EXPECT_THAT(outputs(odd, in, out, {second_, whole_, whole_}), IsEmpty()) << "half of a group";
}

// The halves of a norm that an axis has shared, shared by another one.
TEST_F(Rules, HalvesOfANormAreSharedAgain) {
  const std::vector<Shape> x = {{2, 4, 6, 8}}, statistics = {{2, 2, 4}}, in = {x[0], statistics[0], {4}, {4}};
  EXPECT_THAT(outputs(NormStatistics{4}, x, statistics, {third_}), ElementsAre("split 2, -> partial"));
  EXPECT_THAT(outputs(NormStatistics{4}, x, statistics, {second_}), ElementsAre("split 1, -> split 2"));
  EXPECT_THAT(outputs(NormStatistics{4}, x, statistics, {first_}), ElementsAre("split 0, -> split 1"));
  EXPECT_THAT(outputs(NormStatistics{}, x, {{2, 4}}, {first_}), ElementsAre("split 0, -> partial"));
  EXPECT_THAT(outputs(NormStatistics{}, x, {{2, 4}}, {second_}), ElementsAre("split 1, -> split 1"));
  EXPECT_THAT(outputs(NormStatistics{1}, x, {{2, 2, 1}}, {second_}), IsEmpty()) << "half of a group";
  const ApplyNorm instance{.groups = 4};
  EXPECT_THAT(outputs(instance, in, x, {third_, whole_, whole_, whole_}),
              ElementsAre("split 2, whole*, whole*, whole*, -> split 2"));
  EXPECT_THAT(outputs(instance, in, x, {second_, third_, whole_, whole_}),
              ElementsAre("split 1, split 2, split 0, split 0, -> split 1"));
  EXPECT_THAT(outputs(instance, in, x, {first_, second_, whole_, whole_}),
              ElementsAre("split 0, split 1, whole*, whole*, -> split 0"));
}

// What a rank's convolution crops of its results are those of its neighbours: kernel 4, stride 2, padded by 1, makes of
// (1 + 4 + 1) rows (6 - 1) 2 + 4 = 14, of which 3 at either end are theirs; kernel 3, of 4 + 1 rows 4 2 + 3 = 11, of
// which one before and two after.
TEST_F(Rules, TransposedConvolutionsCropTheirHalo) {
  const auto cropped = [&](std::int64_t kernel, Ints output_pad) {
    const Convolution op{{kernel, kernel}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1, true, std::move(output_pad)};
    const std::vector<Shape> in = {{2, 3, 8, 8}, {3, 5, kernel, kernel}}, out = {{2, 5, 16, 16}};
    const std::vector<std::optional<Layout>> arriving = {third_, std::nullopt};
    const Operands o{in, out, arriving, 2, {}, {true, true}};
    for (const Variant& v : sharding::variants(op, o))
      if (v.cut == Cut::along && v.outputs[0].is_split(2)) return std::get<Convolution>(v.attributes);
    ADD_FAILURE() << "not shared along the image";
    return op;
  };
  const Convolution four = cropped(4, {}), three = cropped(3, {1, 1});
  EXPECT_THAT(four.pad_begin, ElementsAre(3, 1));
  EXPECT_THAT(four.pad_end, ElementsAre(3, 1));
  EXPECT_THAT(three.pad_begin, ElementsAre(1, 1));
  EXPECT_THAT(three.pad_end, ElementsAre(2, 1));
  EXPECT_THAT(three.output_pad, ElementsAre(0, 1));
}

// Each group of a depthwise convolution is a channel of its own.
TEST_F(Rules, DepthwiseConvolutionsExchangeNothing) {
  Convolution depthwise{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 8, false, {}};
  const std::vector<std::string> all =
      outputs(depthwise, {{2, 8, 6, 6}, {8, 1, 3, 3}}, {{2, 8, 6, 6}}, {second_, whole_});
  EXPECT_THAT(all, testing::Contains("split 1, split 0, -> split 1"));
}

}  // namespace
}  // namespace sibyl
