// Ctrl-C and SIGTERM, as a question that may be asked.
#pragma once

namespace sibyl {

// Once, at the start; after MPI_Init, which may install handlers of its own. `and_tell`: on standard error, at once:
// where another rank was lost this one waits for it, and is killed before it can say anything else.
void watch_for_interruption(bool and_tell);
bool told_to_end();

}  // namespace sibyl
