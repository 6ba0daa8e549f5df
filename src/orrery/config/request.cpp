#include "orrery/config/request.h"

#include "orrery/base/error.h"

namespace orrery::config {

Request overlay(Request base, const Request& over) {
  using R = Request;
  const auto replace_together = [&](auto... members) {
    if ((is_set(over.*members) || ...)) ((base.*members = {}), ...);
  };
  replace_together(&R::images, &R::video, &R::input_path);
  replace_together(&R::num_inference_steps, &R::steps);
  replace_together(&R::prompt, &R::prompt_path, &R::prompt_embeds);
  replace_together(&R::negative_prompt, &R::negative_prompt_file, &R::negative_prompt_embeds);
  if (over.aspect_ratio) base.width.reset(), base.height.reset();
  if (over.width || over.height) base.aspect_ratio.reset(), base.resolution.reset();
  if (over.resolution) base.width.reset(), base.height.reset();
  R::fields([&](auto member, const Field&) {
    if (is_set(over.*member)) base.*member = over.*member;
  });
  return base;
}

Mode mode_of(const Request& request) {
  if (request.mode) return *request.mode;
  if (!controls_of(request).empty()) return Mode::kTransfer;
  if (request.video) return Mode::kVideo2World;
  return is_set(request.images) ? Mode::kImage2World : Mode::kText2World;
}

int64_t evaluations(const Request& request, bool karras) {
  if (request.num_inference_steps) return *request.num_inference_steps;
  ensure(request.steps.has_value(), "evaluations: neither num_inference_steps nor steps is set");
  return *request.steps + (karras && request.reference == Reference::kOfficial ? 1 : 0);
}

}  // namespace orrery::config
