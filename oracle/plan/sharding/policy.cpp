#include "oracle/plan/sharding/policy.h"

namespace sibyl {

std::vector<Policy> policies(const Strategy& s) {
  using W = Policy::Weights;
  using H = Policy::Home;
  const H tensor_home = s.sequence ? H::sequence : H::whole;
  const std::vector<Policy> all = {
      {W::experts, H::whole, MeshAxis::expert, 0},
      {W::image, H::whole, MeshAxis::depth, 3},     {W::image, H::whole, MeshAxis::height, 2},
      {W::image, H::whole, MeshAxis::width, 1},     {W::columns, H::whole, MeshAxis::filter, 0},
      {W::rows, H::features, MeshAxis::channel, 0}, {W::alternate, tensor_home, MeshAxis::tensor, 0, s.context},
      {W::tokens, H::whole, MeshAxis::context, 0},
  };
  std::vector<Policy> used;
  for (const Policy& policy : all)
    if (s.degree(policy.axis) > 1) used.push_back(policy);
  return used;
}

}  // namespace sibyl
