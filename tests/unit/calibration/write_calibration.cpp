// write_calibration FILE: the example, as save_calibration writes it.
#include "example.h"

int main(int, char** argv) { return sibyl::save_calibration(sibyl::example_calibration(), argv[1]) ? 0 : 1; }
