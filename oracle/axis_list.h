// The axes along which devices share the work of a step, a line each: all that is to be said of one. From the axis along
// which neighbouring ranks lie to the farthest, where users do not say otherwise (--order). A line is
//
//   AXIS(name, shares, weights, sums, image_dim, turn)
//
//   name       its MeshAxis, its degree in Strategy, and what users call it
//   shares     what its ranks share: `work`, operations on the same samples; `images`, the same, said together as
//              spatial=DxHxW; `samples`; `stages`, operations one after the other
//   weights    how multiplications by weights are cut, as Policy::Weights has it (plan/sharding/policy.h); `none`: it does
//              not split one replica's program
//   sums       where summands are put together: Policy::Home
//   image_dim  `image` weights: which dimension of the model's images, the last being 1
//   turn       when it is applied to a program, the first being 1: after those whose local shapes it sees
//
// A macro, for C++20 makes no enumerators and members of values. To add an axis: docs/adding.md.
#pragma once

// clang-format off
#define SIBYL_AXES(AXIS)                                         \
  AXIS(tensor,   work,    alternate, whole,    0, 8)             \
  AXIS(filter,   work,    columns,   whole,    0, 6)             \
  AXIS(channel,  work,    rows,      features, 0, 7)             \
  AXIS(width,    images,  image,     whole,    1, 5)             \
  AXIS(height,   images,  image,     whole,    2, 4)             \
  AXIS(depth,    images,  image,     whole,    3, 3)             \
  AXIS(context,  work,    tokens,    whole,    0, 9)             \
  AXIS(expert,   samples, experts,   whole,    0, 1)             \
  AXIS(table,    samples, tables,    whole,    0, 2)             \
  AXIS(data,     samples, none,      whole,    0, 0)             \
  AXIS(pipeline, stages,  none,      whole,    0, 0)
// clang-format on
