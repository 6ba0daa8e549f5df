#include "orrery/config/request.h"

#include "orrery/base/error.h"

namespace orrery::config {

Request overlay(Request base, const Request& over) {
  using R = Request;
  const auto replace_together = [&](auto... members) {
    if (((over.*members).has_value() || ...)) ((base.*members).reset(), ...);
  };
  replace_together(&R::image, &R::video, &R::input_path);
  replace_together(&R::num_inference_steps, &R::steps);
  replace_together(&R::prompt, &R::prompt_path, &R::prompt_embeds);
  replace_together(&R::negative_prompt, &R::negative_prompt_file, &R::negative_prompt_embeds);
  R::fields([&](auto member, const Field&) {
    if (over.*member) base.*member = over.*member;
  });
  return base;
}

Mode mode_of(const Request& request) {
  if (request.mode) return *request.mode;
  if (request.video) return Mode::kVideo2World;
  return request.image ? Mode::kImage2World : Mode::kText2World;
}

int64_t evaluations(const Request& request, bool karras) {
  if (request.num_inference_steps) return *request.num_inference_steps;
  ensure(request.steps.has_value(), "evaluations: neither num_inference_steps nor steps is set");
  return *request.steps + (karras && request.reference == Reference::kOfficial ? 1 : 0);
}

}  // namespace orrery::config
