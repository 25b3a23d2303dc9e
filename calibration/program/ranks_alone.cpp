// Ranks for a program that is alone: no MPI.
#include <cstdlib>

#include "calibration/program/ranks.h"

namespace sibyl {

Ranks::Ranks(int&, char**&) {}
Ranks::~Ranks() = default;
void Ranks::barrier() const {}
void Ranks::rest() const {}
int Ranks::greatest(int value) const { return value; }
std::vector<double> Ranks::gather(double value) const { return {value}; }
std::string Ranks::from_first(const std::string& text) const { return text; }
Result<void> Ranks::agree(const Result<void>& own) const { return own; }
void Ranks::abort(int code) const { std::_Exit(code); }
std::string Ranks::library_version() { return "none"; }

}  // namespace sibyl
