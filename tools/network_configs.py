"""config.json of the published networks, for the tools that write checkpoints. (spec cosmos-predict2.5 §8.1;
qwen-image §2.1, §5.1, §6.1; qwen2.5-vl-text §1, §7.1)"""

LATENT_CHANNELS = 16
LATENTS_MEAN = [-0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508,
                0.4134, -0.0715, 0.5517, -0.3632, -0.1922, -0.9497, 0.2503, -0.2921]
LATENTS_STD = [2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
               3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160]


def _wan_architecture(base):
    return {"base_dim": base, "z_dim": LATENT_CHANNELS, "dim_mult": [1, 2, 4, 4], "num_res_blocks": 2,
            "attn_scales": [], "temperal_downsample": [False, True, True], "dropout": 0.0,
            "latents_mean": LATENTS_MEAN, "latents_std": LATENTS_STD}


def wan_vae_config(base=96):
    return {"_class_name": "AutoencoderKLWan", **_wan_architecture(base), "is_residual": False, "in_channels": 3,
            "out_channels": 3, "patch_size": None, "scale_factor_temporal": 4, "scale_factor_spatial": 8}


def qwen_image_vae_config(base=96):
    """The same network under a name of its own."""
    return {"_class_name": "AutoencoderKLQwenImage", **_wan_architecture(base), "input_channels": 3}


def qwen_image_config(heads=24, blocks=60, text_width=3584):
    return {"_class_name": "QwenImageTransformer2DModel", "patch_size": 2, "in_channels": 4 * LATENT_CHANNELS,
            "out_channels": LATENT_CHANNELS, "num_layers": blocks, "attention_head_dim": 128,
            "num_attention_heads": heads, "joint_attention_dim": text_width, "axes_dims_rope": [16, 56, 56],
            "guidance_embeds": False}


def qwen_image_scheduler_config():
    return {"_class_name": "FlowMatchEulerDiscreteScheduler", "num_train_timesteps": 1000, "shift": 1.0,
            "use_dynamic_shifting": True, "base_shift": 0.5, "max_shift": 0.9, "base_image_seq_len": 256,
            "max_image_seq_len": 8192, "shift_terminal": 0.02, "time_shift_type": "exponential",
            "invert_sigmas": False, "stochastic_sampling": False, "use_karras_sigmas": False,
            "use_exponential_sigmas": False, "use_beta_sigmas": False}


def qwen_vl_config():
    """Qwen2.5-VL-7B, the text encoder of Qwen-Image."""
    return {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", "hidden_act": "silu",
        "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
        "num_key_value_heads": 4, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "max_position_embeddings": 128000,
        "rope_scaling": {"mrope_section": [16, 24, 24], "rope_type": "default", "type": "default"},
        "use_sliding_window": False, "vocab_size": 152064, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "bos_token_id": 151643, "eos_token_id": 151645, "image_token_id": 151655, "video_token_id": 151656,
        "vision_start_token_id": 151652, "vision_end_token_id": 151653,
        "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
                          "out_hidden_size": 3584, "in_channels": 3, "patch_size": 14, "temporal_patch_size": 2,
                          "spatial_merge_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31],
                          "tokens_per_second": 2, "hidden_act": "silu"},
    }
