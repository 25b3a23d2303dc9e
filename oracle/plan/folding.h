// A graph without most of its repeated layers, and the program of the whole from the program of what is left.
//
// Splitting a program over ranks takes as long as the program is, and of a transformer's hundred layers all but the
// first and the last come out the same. So four of the layers stay, the program of these is made, and its third is put
// in again as often as layers were left out. The second and the third must have come out the same, step by step and
// tensor by tensor; where they did not, or a layer reads what lies further back than the one before it, nothing is
// folded and the whole is made as ever.
//
// Tensors that are put in again have other numbers than in the program that is made directly; nothing else differs.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

struct Folding {
  Graph graph;               // what programs are made of; operations and tensors have its numbers
  std::size_t first = 0;     // operation of it that begins the first of the layers that stay
  std::size_t length = 0;    // operations of a layer
  std::size_t left_out = 0;  // layers
};

// None where fewer than six layers in a row repeat.
std::optional<Folding> fold(const Graph& graph);

// How many layers in a row repeat; 0 where fewer than six do.
int repeated_layers(const Graph& graph);

// Of the program of the folding's graph, however it was split: the steps that stand for those of the layers left out,
// too. None where it cannot be unfolded.
std::optional<Segment> repeated_layer(const Folding& folding, const Stage& folded);

struct Unfolded {
  Stage program;
  std::vector<std::size_t> like;  // by step: the first step that runs the same, one that was not put in; itself, too
};

// `folded`: as above.
std::optional<Unfolded> unfold(const Folding& folding, const Stage& folded);

}  // namespace sibyl
