#pragma once
// ProcessGroupGloo.hpp includes this header and uses nothing of it.
