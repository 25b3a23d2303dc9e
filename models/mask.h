// Masks of attention by their elements.
#pragma once

#include <cstdint>
#include <span>

namespace sibyl {

// How a mask is put on scores: what it holds where a query may see a key.
enum class MaskForm {
  added,              // 0; elsewhere a number so low that softmax makes it nothing
  keeps_where_true,   // a condition
  keeps_where_false,  // a condition of what is hidden
};

// Of a mask that is added, what hides a key: minus infinity, a type's lowest number, -1e9, -1e4…
inline bool hides_key(double element) { return element <= -1e3; }

// True if it hides something, and is 0 elsewhere. No weight is like this.
bool is_added_mask(std::span<const double> elements);

// Of a mask [size, size] of queries by keys: true if each query sees the keys up to its own, and no others.
bool is_causal(std::span<const double> elements, std::int64_t size, MaskForm form);

}  // namespace sibyl
