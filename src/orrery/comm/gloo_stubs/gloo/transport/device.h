#pragma once

namespace gloo::transport {
class Device;  // handed from ProcessGroupGloo's factory to its options, never looked into
}
