#include "gui/model/latest.h"

// The metaobject of LatestSignals is made here.
