// The rules' `saved` against libtorch: each operation is run with autograd on, and everything but its result is let go. What then
// stays allocated beyond the parameters is what autograd keeps; the rule must say the same number of bytes, to the
// allocator's rounding of 64.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "aten/memory.h"
#include "aten/run_operation.h"
#include "tests/unit/models/training/rules_of.h"

namespace sibyl {
namespace {

struct Case {
  const char* signature;
  std::uint32_t gradients;
  std::uint32_t integers = 0;  // operands that hold int64 numbers
  std::uint32_t integer_results = 0;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.signature; }

double rounded(double bytes) { return std::ceil(bytes / 64) * 64; }

struct Autograd : testing::TestWithParam<Case> {};

// Distinct tensors that the rule keeps: operands and the result once each, every extra.
double predicted(const Signature& s, const TrainingRule& rule, std::uint32_t integers) {
  double bytes = 0;
  for (const Saved& saved : rule.saved) {
    const bool integral = saved.what == Saved::What::input && ((integers >> saved.index) & 1U) != 0;
    const double element = integral ? 8 : 4;
    if (saved.what == Saved::What::extra)
      bytes += rounded(saved.bytes.value());
    else if (saved.what == Saved::What::input)
      bytes += rounded(static_cast<double>(element_count(s.inputs[saved.index])) * element);
  }
  return bytes;
}

TEST_P(Autograd, KeepsWhatTheRuleSays) {
  aten::MemoryMeter::install();
  const auto signature = parse_signature(GetParam().signature);
  ASSERT_TRUE(signature);
  const TrainingRule rule = training_rule(*signature, GetParam().gradients, Backend::cpu);

  std::vector<at::Tensor> outputs;
  auto run = [&] {
    std::vector<at::Tensor> inputs;
    for (std::size_t i = 0; i < signature->inputs.size(); ++i) {
      at::Tensor leaf = ((GetParam().integers >> i) & 1U) != 0 ? at::zeros(signature->inputs[i], at::kLong)
                                                                 : at::rand(signature->inputs[i]).add_(0.5);
      if (((GetParam().gradients >> i) & 1U) == 0) {
        inputs.push_back(leaf);
        continue;
      }
      // What the leaf's own node holds is the leaf: a copy of it is an operand as an operation before would make it.
      leaf.requires_grad_();
      inputs.push_back(leaf.clone());
    }
    outputs = aten::run_operation(signature->attributes, inputs, signature->outputs);
  };
  run();  // whatever is made once per process is made now
  outputs.clear();
  const std::int64_t before = aten::MemoryMeter::live();
  run();
  double leaves = 0, results = 0;
  for (std::size_t i = 0; i < signature->inputs.size(); ++i)
    if (((GetParam().gradients >> i) & 1U) != 0) leaves += rounded(4.0 * static_cast<double>(element_count(signature->inputs[i])));
  for (std::size_t i = 0; i < signature->outputs.size(); ++i) {
    const double element = ((GetParam().integer_results >> i) & 1U) != 0 ? 8 : 4;
    results += rounded(element * static_cast<double>(element_count(signature->outputs[i])));
  }
  const double kept = static_cast<double>(aten::MemoryMeter::live() - before) - leaves - results;
  // Scalars beside the tensors (a wrapped number, the total weight of a loss) take 64 bytes each and are not in the rules;
  // the scalar of the squared error lies in the memory of the squares.
  EXPECT_GE(kept + 64, predicted(*signature, rule, GetParam().integers));
  EXPECT_LE(kept, predicted(*signature, rule, GetParam().integers) + 128);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, Autograd,
    testing::Values(
        Case{"convolution(kernel=3x3,stride=1x1,dilation=1x1,pad_begin=1x1,pad_end=1x1)[2x8x16x16,8x8x3x3]->[2x8x16x16]"
             ":f32",
             3},
        Case{"convolution(kernel=2x2,stride=1x1,dilation=1x1,pad_begin=0x0,pad_end=1x1)[2x8x16x16,8x8x2x2]->[2x8x16x16]"
             ":f32",
             3},
        Case{"linear[64x32,16x32,16]->[64x16]:f32", 7}, Case{"linear[64x32,16x32,16]->[64x16]:f32", 1},
        Case{"linear[64x32,16x32,16]->[64x16]:f32", 6}, Case{"linear(weight_kn=1)[8x8x32,32x16,16]->[8x8x16]:f32", 7},
        Case{"linear[8x8x32,16x32]->[8x8x16]:f32", 3}, Case{"matmul[4x16x32,4x32x16]->[4x16x16]:f32", 3},
        Case{"attention[2x4x16x8,2x4x16x8,2x4x16x8]->[2x4x16x8]:f32", 7},
        Case{"attention(scale=0.5)[2x4x16x8,2x4x16x8,2x4x16x8]->[2x4x16x8]:f32", 7},
        Case{"attention(causal=1,scale=0.5,dropout=0.1)[2x4x16x8,2x4x16x8,2x4x16x8]->[2x4x16x8]:f32", 7},
        Case{"attention[2x4x16x8,2x2x16x8,2x2x16x8]->[2x4x16x8]:f32", 7},
        Case{"normalization[4x16x8x8,16,16,16,16]->[4x16x8x8]:f32", 7},
        Case{"normalization(kind=layer)[4x16x64,64,64]->[4x16x64]:f32", 7},
        Case{"normalization(kind=rms)[4x16x64,64]->[4x16x64]:f32", 3},
        Case{"normalization(kind=group,groups=4)[4x16x8x8,16,16]->[4x16x8x8]:f32", 7},
        Case{"normalization(kind=instance)[4x16x8x8,16,16]->[4x16x8x8]:f32", 7},
        Case{"pool(kernel=2x2,stride=2x2)[2x8x16x16]->[2x8x8x8]:f32", 1},
        Case{"pool(kernel=2x2x2,stride=2x2x2)[2x4x8x8x8]->[2x4x4x4x4]:f32", 1},
        Case{"pool(kind=average,kernel=2x2,stride=2x2)[2x8x16x16]->[2x8x8x8]:f32", 1},
        Case{"pool(kind=average,global=1)[2x64x16x16]->[2x64x1x1]:f32", 1}, Case{"unary[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=gelu)[64x64]->[64x64]:f32", 1}, Case{"unary(kind=gelu_tanh)[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=silu)[64x64]->[64x64]:f32", 1}, Case{"unary(kind=hard_swish)[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=hard_sigmoid)[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=leaky_relu,alpha=0.1)[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=elu,alpha=1)[64x64]->[64x64]:f32", 1}, Case{"unary(kind=mish)[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=clip,beta=6)[64x64]->[64x64]:f32", 1}, Case{"unary(kind=sigmoid)[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=tanh)[64x64]->[64x64]:f32", 1}, Case{"unary(kind=softplus)[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=erf)[64x64]->[64x64]:f32", 1}, Case{"unary(kind=exp)[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=log)[64x64]->[64x64]:f32", 1}, Case{"unary(kind=sqrt)[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=rsqrt)[64x64]->[64x64]:f32", 1}, Case{"unary(kind=reciprocal)[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=pow,alpha=3)[64x64]->[64x64]:f32", 1}, Case{"unary(kind=abs)[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=neg)[64x64]->[64x64]:f32", 1}, Case{"unary(kind=sin)[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=cos)[64x64]->[64x64]:f32", 1}, Case{"unary(kind=prelu)[4x16x8x8,16]->[4x16x8x8]:f32", 3},
        Case{"unary(kind=floor)[64x64]->[64x64]:f32", 1},
        Case{"unary(kind=scale_shift,alpha=2)[64x64]->[64x64]:f32", 1}, Case{"binary[64x64,64x64]->[64x64]:f32", 3},
        Case{"binary(kind=sub)[64x64,64x64]->[64x64]:f32", 3}, Case{"binary(kind=mul)[64x64,64x64]->[64x64]:f32", 1},
        Case{"binary(kind=mul)[64x64,64x64]->[64x64]:f32", 3}, Case{"binary(kind=div)[64x64,64x64]->[64x64]:f32", 1},
        Case{"binary(kind=div)[64x64,64x64]->[64x64]:f32", 2}, Case{"binary(kind=pow)[64x64,64x64]->[64x64]:f32", 3},
        Case{"binary(kind=max)[64x64,64x64]->[64x64]:f32", 1}, Case{"softmax[64x64]->[64x64]:f32", 1},
        Case{"softmax(log=1)[64x64]->[64x64]:f32", 1}, Case{"dropout[64x64]->[64x64]:f32", 1},
        Case{"embedding[100x64,2x32]->[2x32x64]:f32", 1, 2}, Case{"reduce(axes=1)[64x64]->[64x1]:f32", 1},
        Case{"reduce(kind=sum,axes=1)[64x64]->[64x1]:f32", 1}, Case{"reduce(kind=max,axes=1)[64x64]->[64x1]:f32", 1},
        Case{"reduce(kind=l2,axes=1)[64x64]->[64x1]:f32", 1}, Case{"transpose(permutation=1x0)[64x32]->[32x64]:f32", 1},
        Case{"concat(axis=1)[64x64,64x64]->[64x128]:f32", 3}, Case{"pad(begin=0x1,end=0x1)[64x64]->[64x66]:f32", 1},
        Case{"resize[2x4x8x8]->[2x4x16x16]:f32", 1}, Case{"resize(kind=linear)[2x4x8x8]->[2x4x16x16]:f32", 1},
        Case{"running_sum(axis=1)[64x64]->[64x64]:f32", 1},
        Case{"running_sum(reverse=1,exclusive=1)[64x64]->[64x64]:f32", 1},
        Case{"gather_elements(axis=1)[64x64,64x32]->[64x32]:f32", 1, 2}, Case{"copy[64x64]->[64x64]:f32", 1}, Case{"local_response_norm[2x16x8x8]->[2x16x8x8]:f32", 1},
        Case{"embedding(partial=1)[100x64,2x32]->[2x32x64]:f32", 1, 2},
        Case{"class_statistics[64x100,64,64]->[64,64]:f32", 1, 2}, Case{"norm_statistics[4x16x8x8]->[2x16]:f32", 1},
        Case{"norm_statistics(groups=16)[4x16x8x8]->[2x4x16]:f32", 1},
        Case{"norm_statistics(groups=4)[4x16x8x8]->[2x4x4]:f32", 1},
        Case{"apply_norm(parts=2)[4x16x8x8,2x16,16,16]->[4x16x8x8]:f32", 15},
        Case{"apply_norm(groups=16,parts=2)[4x16x8x8,2x4x16,16,16]->[4x16x8x8]:f32", 15},
        Case{"apply_norm(groups=4,parts=2)[4x16x8x8,2x4x4,16,16]->[4x16x8x8]:f32", 15},
        Case{"top_k(k=2)[64x8]->[64x2,64x2]:f32", 1, 0, 2},
        Case{"dispatch(tokens=32,capacity=16)[64x32,64x2]->[8x32x32,64x2]:f32", 1, 2, 2},
        Case{"combine(tokens=32,capacity=16)[8x32x32,64x2,64x2]->[64x32]:f32", 5, 2},
        Case{"grouped_linear[8x32x16,8x24x16,8x24]->[8x32x24]:f32", 7},
        Case{"grouped_linear[8x32x16,8x24x16]->[8x32x24]:f32", 1},
        Case{"grouped_linear[8x32x16,8x24x16]->[8x32x24]:f32", 2},
        Case{"grouped_linear(weight_kn=1)[8x32x16,8x16x24]->[8x32x24]:f32", 3},
        Case{"cross_entropy[64x100,64]->[scalar]:f32", 1, 2},
        Case{"mean_squared_error[64x64,64x64]->[scalar]:f32", 1}));

}  // namespace
}  // namespace sibyl
