"""Vision-language models of a few thousand random weights, saved as real ones are: config, safetensors, processor."""

from __future__ import annotations

from pathlib import Path

import torch

CHAT = (
    "{% for m in messages %}{% for c in m['content'] %}{% if c['type'] == 'image' %}IMAGE {% else %}{{ c['text'] }} "
    "{% endif %}{% endfor %}{% endfor %}{% if add_generation_prompt %}answer :{% endif %}"
)
"""A chat template; IMAGE stands for the placeholder of the model's processor."""
YES = ("yes", "Yes", "YES", "Ġyes", "▁Yes")
NO = ("no", "No", "NO", "Ġno", "▁NO")
NEITHER = ("yesterday", "not", "maybe", "nose")
WORDS = """
is the of drawn ? answer : question what does this show a drawing left right front back ear tail eye leg wing wheel mane
nose lion taxi cat body neck head foot door window beak shell antenna system you look at drawings
"""
MARKS = """
<pad> <unk> <s> </s> <image> <fake_token_around_image> <end_of_utterance> <global-img> <row_1_col_1> <img> </img>
<IMG_CONTEXT> <video> <|image_pad|> <|video_pad|> <|vision_start|> <|vision_end|> <|image|> <|video|> <im_patch>
<im_col> <im_start> <low_res_im_start> <frame_start> <im_end> <frame_end> <im_low>
"""


def tokenizer(**special):
    """A tokenizer of whole words whose vocabulary has several forms of yes and no."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = list(dict.fromkeys([*MARKS.split(), *YES, *NO, *NEITHER, *WORDS.split()]))
    own = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="<unk>"))
    own.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("isolated")]
    )
    own.add_special_tokens(MARKS.split())
    return PreTrainedTokenizerFast(
        tokenizer_object=own, unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", **special
    )


def lively(model, seed=0, scale=0.35):
    """Random weights that are large enough for answers to differ between images and questions."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim > 1:
                p.copy_(torch.randn(p.shape, generator=g) * scale)
    return model.eval()


def _text(size, **further):
    return {
        "vocab_size": size, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "pad_token_id": 0,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "bos_token_id": 2, "eos_token_id": 3,
        **further,
    }  # fmt: skip


def _vision(**further):
    return {
        "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 28,
        "patch_size": 14, **further,
    }  # fmt: skip


def save(folder: Path, model, processor) -> Path:
    """Write both as `from_pretrained` reads them."""
    lively(model).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def llava(folder):
    from transformers import (
        CLIPImageProcessor,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

    words = tokenizer()
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**_vision(projection_dim=16)),
        text_config=LlamaConfig(**_text(len(words))),
        image_token_id=words.convert_tokens_to_ids("<image>"),
    )
    images = CLIPImageProcessor(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28})
    processor = LlavaProcessor(
        images, words, patch_size=14, vision_feature_select_strategy="default", num_additional_image_tokens=1,
        chat_template=CHAT.replace("IMAGE", "<image>"),
    )  # fmt: skip
    return save(folder, LlavaForConditionalGeneration(config), processor)


def qwen2_5_vl(folder):
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    words = tokenizer()
    ids = words.convert_tokens_to_ids
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}
    config = Qwen2_5_VLConfig(
        text_config=_text(len(words), rope_parameters=rope),
        vision_config={
            "depth": 2, "hidden_size": 16, "intermediate_size": 24, "num_heads": 2, "patch_size": 14,
            "out_hidden_size": 16, "window_size": 56, "fullatt_block_indexes": [1],
        },
        image_token_id=ids("<|image_pad|>"), video_token_id=ids("<|video_pad|>"),
        vision_start_token_id=ids("<|vision_start|>"), vision_end_token_id=ids("<|vision_end|>"),
    )  # fmt: skip
    config.text_config.pad_token_id = 0
    small = {"min_pixels": 56 * 56, "max_pixels": 84 * 84}
    processor = Qwen2_5_VLProcessor(
        Qwen2VLImageProcessor(**small), words, Qwen2VLVideoProcessor(),
        chat_template=CHAT.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>"),
    )  # fmt: skip
    return save(folder, Qwen2_5_VLForConditionalGeneration(config), processor)


def internvl(folder):
    from transformers import (
        GotOcr2ImageProcessor,
        InternVLConfig,
        InternVLForConditionalGeneration,
        InternVLProcessor,
        InternVLVideoProcessor,
    )

    names = {
        "start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }  # fmt: skip
    words = tokenizer(extra_special_tokens=names)
    config = InternVLConfig(
        vision_config=_vision(image_size=[28, 28], patch_size=[7, 7]),
        text_config={"model_type": "qwen2", **_text(len(words))},
        image_token_id=words.convert_tokens_to_ids("<IMG_CONTEXT>"),
    )
    images = GotOcr2ImageProcessor(size={"height": 28, "width": 28}, crop_to_patches=True, min_patches=1, max_patches=3)
    processor = InternVLProcessor(
        images, words, InternVLVideoProcessor(size={"height": 28, "width": 28}), image_seq_length=4,
        chat_template=CHAT.replace("IMAGE", "<IMG_CONTEXT>"),
    )  # fmt: skip
    return save(folder, InternVLForConditionalGeneration(config), processor)


def _idefics3_like(folder, config_class, model_class, processor_class, image_class, *further):
    words = tokenizer()
    config = config_class(
        vision_config=_vision(),
        text_config={"model_type": "llama", **_text(len(words))},
        image_token_id=words.convert_tokens_to_ids("<image>"),
        scale_factor=2,
    )
    images = image_class(size={"longest_edge": 28}, max_image_size={"longest_edge": 28}, do_image_splitting=False)
    processor = processor_class(
        images, words, *further, image_seq_len=1, chat_template=CHAT.replace("IMAGE", "<image>")
    )
    return save(folder, model_class(config), processor)


def idefics3(folder):
    """The class of SmolVLM-Instruct."""
    import transformers as t

    return _idefics3_like(
        folder, t.Idefics3Config, t.Idefics3ForConditionalGeneration, t.Idefics3Processor, t.Idefics3ImageProcessor
    )


def smolvlm(folder):
    """The class of SmolVLM2."""
    import transformers as t

    return _idefics3_like(
        folder, t.SmolVLMConfig, t.SmolVLMForConditionalGeneration, t.SmolVLMProcessor, t.SmolVLMImageProcessor,
        t.SmolVLMVideoProcessor(size={"longest_edge": 28}, max_image_size={"longest_edge": 28}),
    )  # fmt: skip


def molmo2(folder):
    from transformers import (
        Molmo2Config,
        Molmo2ForConditionalGeneration,
        Molmo2ImageProcessor,
        Molmo2Processor,
        Molmo2VideoProcessor,
    )

    words = tokenizer()
    ids = words.convert_tokens_to_ids
    config = Molmo2Config(
        vision_config=_vision(image_size=[28, 28], patch_size=7, head_dim=8, num_key_value_heads=2),
        adapter_config={
            "vision_feature_layer": [1, 0], "hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 2,
            "head_dim": 8, "intermediate_size": 24, "text_hidden_size": 16,
        },
        text_config=_text(len(words) - 4, additional_vocab_size=4),
        image_start_token_id=ids("<im_start>"), low_res_image_start_token_id=ids("<low_res_im_start>"),
        image_end_token_id=ids("<im_end>"), image_low_id=ids("<im_low>"), image_patch_id=ids("<im_patch>"),
        image_col_id=ids("<im_col>"), frame_start_token_id=ids("<frame_start>"), frame_end_token_id=ids("<frame_end>"),
    )  # fmt: skip
    images = Molmo2ImageProcessor(
        size={"height": 28, "width": 28}, patch_size=7, max_crops=1, overlap_margins=[0, 0], pooling_size=[2, 2]
    )
    processor = Molmo2Processor(
        images, Molmo2VideoProcessor(size={"height": 28, "width": 28}, patch_size=7), words,
        chat_template=CHAT.replace("IMAGE", "<|image|>"),
    )  # fmt: skip
    return save(folder, Molmo2ForConditionalGeneration(config), processor)


def paligemma2(folder):
    from transformers import (
        Gemma2Config,
        PaliGemmaConfig,
        PaliGemmaForConditionalGeneration,
        PaliGemmaProcessor,
        SiglipImageProcessor,
        SiglipVisionConfig,
    )

    words = tokenizer()
    images = SiglipImageProcessor(size={"height": 28, "width": 28})
    images.image_seq_length = 4
    processor = PaliGemmaProcessor(images, words)
    config = PaliGemmaConfig(
        vision_config=SiglipVisionConfig(**_vision(vision_use_head=False)),
        text_config=Gemma2Config(**_text(len(words), query_pre_attn_scalar=8, sliding_window=64)),
        image_token_index=words.convert_tokens_to_ids("<image>"), projection_dim=16, hidden_size=16,
        vocab_size=len(words),
    )  # fmt: skip
    return save(folder, PaliGemmaForConditionalGeneration(config), processor)


def blip2(folder, encoder=False):
    from transformers import (
        Blip2Config,
        Blip2ForConditionalGeneration,
        Blip2Processor,
        BlipImageProcessor,
        OPTConfig,
        T5Config,
    )

    words = tokenizer()
    size = len(words)
    opt = OPTConfig(
        vocab_size=size, hidden_size=16, num_hidden_layers=2, ffn_dim=24, num_attention_heads=2, word_embed_proj_dim=16,
        max_position_embeddings=64, pad_token_id=0, bos_token_id=2, eos_token_id=3,
    )  # fmt: skip
    t5 = T5Config(
        vocab_size=size, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=3,
    )  # fmt: skip
    config = Blip2Config(
        vision_config=_vision(),
        qformer_config={
            "vocab_size": size, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 24, "encoder_hidden_size": 16, "max_position_embeddings": 32,
        },
        text_config=(t5 if encoder else opt).to_dict(), num_query_tokens=3,
        image_token_index=words.convert_tokens_to_ids("<image>"),
    )  # fmt: skip
    images = BlipImageProcessor(size={"height": 28, "width": 28})
    return save(folder, Blip2ForConditionalGeneration(config), Blip2Processor(images, words, num_query_tokens=3))


def blip2_t5(folder):
    """With an encoder in its language model."""
    return blip2(folder, encoder=True)


def blip(folder):
    from transformers import BlipConfig, BlipForQuestionAnswering, BlipImageProcessor, BlipProcessor

    words = tokenizer()
    text = {
        "vocab_size": len(words), "hidden_size": 16, "encoder_hidden_size": 16, "intermediate_size": 24,
        "projection_dim": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 64,
        "bos_token_id": 2, "sep_token_id": 3, "pad_token_id": 0, "eos_token_id": 3,
    }  # fmt: skip
    config = BlipConfig(text_config=text, vision_config=_vision(projection_dim=16))
    images = BlipImageProcessor(size={"height": 28, "width": 28})
    return save(folder, BlipForQuestionAnswering(config), BlipProcessor(images, words))
