#include "trainer/agree.h"

#include <algorithm>

namespace sibyl::trainer {

Result<void> agree(const Communicator& communicator, const Result<void>& own) {
  const std::vector<double> codes =
      communicator.gather_doubles(own ? -1.0 : static_cast<double>(static_cast<int>(own.error().code)));
  const auto first = std::find_if(codes.begin(), codes.end(), [](double code) { return code >= 0; });
  if (first == codes.end()) return {};
  if (first - codes.begin() == communicator.rank()) return own;
  return fail(static_cast<ErrorCode>(static_cast<int>(*first)), {});
}

}  // namespace sibyl::trainer
