#include "models/mask.h"

#include <algorithm>

namespace sibyl {
namespace {

bool holds(double element, bool kept, MaskForm form) {
  switch (form) {
    case MaskForm::added: return kept ? element == 0 : hides_key(element);
    case MaskForm::keeps_where_true: return (element != 0) == kept;
    case MaskForm::keeps_where_false: return (element == 0) == kept;
  }
  return false;
}

}  // namespace

bool is_added_mask(std::span<const double> elements) {
  return std::any_of(elements.begin(), elements.end(), hides_key) &&
         std::all_of(elements.begin(), elements.end(), [](double e) { return e == 0 || hides_key(e); });
}

bool is_causal(std::span<const double> elements, std::int64_t size, MaskForm form) {
  const auto rows = static_cast<std::size_t>(size);
  if (size < 1 || elements.size() / rows != rows || elements.size() % rows != 0) return false;
  for (std::size_t query = 0; query < rows; ++query)
    for (std::size_t key = 0; key < rows; ++key)
      if (!holds(elements[query * rows + key], key <= query, form)) return false;
  return true;
}

}  // namespace sibyl
