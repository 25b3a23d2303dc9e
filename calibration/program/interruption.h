// Ctrl-C and SIGTERM, as a question that may be asked.
#pragma once

namespace sibyl {

void watch_for_interruption();  // once, at the start; after MPI_Init, which may install handlers of its own
bool interrupted();

}  // namespace sibyl
