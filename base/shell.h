// Words of commands that users copy into a shell.
#pragma once

#include <string>
#include <string_view>

namespace sibyl {

// One word as a POSIX shell reads it back, whatever it holds; as it is where it needs no quotes.
std::string shell_word(std::string_view text);

}  // namespace sibyl
