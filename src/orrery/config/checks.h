#pragma once
#include <cstdint>
#include <optional>

// Shared by the files behind validate.h.
namespace orrery::config {

struct Request;
struct Limits;

/// Error of kind request that names the field and the legal range; NaN is outside of any.
void check_range(const std::optional<int64_t>& value, const char* field, int64_t low, int64_t high);
void check_range(const std::optional<double>& value, const char* field, double low, double high);

/// Controls, and what a request says besides if it has some; that it has none, for other models.
void check_controls(const Request& request, const Limits& limits);

}  // namespace orrery::config
