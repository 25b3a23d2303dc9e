#include "base/shell.h"

#include <gtest/gtest.h>

namespace sibyl {
namespace {

TEST(ShellWord, StandsAsItIsWhereItCan) {
  EXPECT_EQ(shell_word("--parallel=data=2,tensor=4"), "--parallel=data=2,tensor=4");
  EXPECT_EQ(shell_word("models/net-1.onnx"), "models/net-1.onnx");
}

TEST(ShellWord, IsQuotedWhereAShellWouldReadAnotherOne) {
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("my net.onnx"), "'my net.onnx'");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
}

}  // namespace
}  // namespace sibyl
