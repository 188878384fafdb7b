"""Models for images: timm, torchvision, segmentation_models_pytorch.

One small member of each family. Most take images of any size; those of FIXED take the size that
they are made for.
"""
import torch
from client_uses import define_nms

from . import Case

# ---- timm ---------------------------------------------------------------------------------------

ANY_SIZE = """
    caformer_s18 convmixer_768_32 convnextv2_atto cpubone_nano crossvit_tiny_240 cs3darknet_focus_s
    csatv2 cspnext_tiny davit_tiny densenet121 dla46x_c dpn48b ecaresnet26t edgenext_xx_small
    efficientnet_lite0 efficientnetv2_rw_t efficientvim_m1 efficientvit_b0 ese_vovnet19b_slim_dw
    fasternet_t0 fastvit_t8 fbnetc_100 focalnet_tiny_srf gernet_s ghostnet_050 hardcorenas_b
    hgnetv2_b0 hrnet_w18_small iformer_t inception_next_atto lambda_resnet26t lcnetv2_small
    legacy_seresnet18 legacy_xception lowformer_b0 mixnet_s mnasnet_small mobilenetv3_small_050
    mobilenetv5_base mobileone_s0 nasnetalarge nextvit_small nf_resnet26 pnasnet5large
    poolformerv2_s12 pvt_v2_b0 rdnet_tiny regnetx_002 repghostnet_050 repvgg_a0 res2next50
    resnest14d resnet10t resnet50d resnetv2_18 resnext50_32x4d rexnet_100 sam2_hiera_tiny
    selecsls42 seresnet50 shvit_s1 skresnet18 starnet_s050 test_byobnet test_convnext test_mambaout
    test_nfnet tf_efficientnet_b0 tiny_vit_5m_224 tresnet_m xception41p
""".split()
FIXED = """
    cait_xxs24_224 coat_tiny coatnet_pico_rw_224 convit_tiny deit_tiny_distilled_patch16_224
    deit_tiny_patch16_224 botnet26t_256 efficientformerv2_s0 gcvit_xxtiny gmixer_12_224
    gmlp_ti16_224 hiera_tiny_224 levit_128s mixer_s32_224 nest_tiny pit_ti_224 resmlp_12_224
    swin_tiny_patch4_window7_224 swinv2_cr_tiny_224 swinv2_tiny_window16_256
    tnt_s_legacy_patch16_224 visformer_tiny vit_tiny_r_s16_p8_224 test_vit_relpos
    vitamin_small_224 volo_d1_224
""".split()
SPECIAL = {  # name: size, another size, arguments
    "beit_base_patch16_224": (64, 0, {"img_size": 64, "depth": 2}),
    "deepseek_vit_412m": (56, 84, {"img_size": 56, "depth": 2}),
    "efficientformer_l1": (224, 0, {}),
    "efficientvit_m0": (64, 96, {"img_size": 64}),
    "eva02_tiny_patch14_224": (56, 84, {"img_size": 56, "depth": 3, "dynamic_img_size": True}),
    "gemma4_vit_167m": (64, 96, {"img_size": 64, "depth": 2}),
    "inception_resnet_v2": (96, 128, {}),
    "inception_v3": (96, 128, {}),
    "inception_v4": (96, 128, {}),
    "maxvit_pico_rw_256": (64, 128, {"img_size": 64}),
    "mobilevit_xxs": (64, 96, {"img_size": 64}),
    "mvitv2_tiny": (64, 32, {"img_size": 64}),
    "naflexvit_base_patch16_gap": (64, 96, {"depth": 2}),
    "qwen3_vit_88m": (64, 96, {"img_size": 64, "depth": 2}),
    "repvit_m1": (64, 96, {}),
    "samvit_base_patch16_224": (64, 96, {"img_size": 64, "depth": 2}),
    "sehalonet33ts": (256, 512, {}),
    "sequencer2d_s": (64, 96, {"img_size": 64}),
    "swiftformer_xs": (64, 96, {}),
    "twins_svt_small": (64, 96, {"img_size": 64}),
    "vgg11": (64, 96, {}),
    "vit_tiny_patch16_224": (64, 96, {"img_size": 64, "depth": 3, "dynamic_img_size": True}),
    "xcit_nano_12_p8_224": (64, 96, {"img_size": 64}),
}


def images(batch, size):
    return (torch.randn(batch, 3, size, size),), {}


def load_timm():
    define_nms()
    import timm  # noqa: F401


def timm_names():
    return sorted([*ANY_SIZE, *FIXED, *SPECIAL])


def timm_model(name):
    import timm

    usual = (64, 0, {"img_size": 64}) if name in FIXED else (64, 96, {})
    size, other, arguments = SPECIAL.get(name, usual)
    return Case(timm.create_model(name, **arguments), images, size, other)


# ---- torchvision --------------------------------------------------------------------------------

TORCHVISION = {  # name: size, another size, arguments
    **dict.fromkeys(
        "alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet mnasnet0_5 "
        "mobilenet_v2 mobilenet_v3_small regnet_y_400mf resnet18 resnet50 resnext50_32x4d "
        "shufflenet_v2_x0_5 squeezenet1_1 swin_t swin_v2_t vgg11 wide_resnet50_2".split(),
        (64, 96, {})),
    "inception_v3": (96, 128, {"init_weights": False}),
    "maxvit_t": (224, 0, {}),
    "vit_b_16": (64, 0, {"image_size": 64}),
    "deeplabv3_mobilenet_v3_large": (64, 96, {"weights_backbone": None}),
    "fcn_resnet50": (64, 96, {"weights_backbone": None}),
    "lraspp_mobilenet_v3_large": (64, 96, {"weights_backbone": None}),
    "raft_small": (128, 144, {}),
    **dict.fromkeys("r3d_18 mc3_18 r2plus1d_18 swin3d_t".split(), (64, 96, {})),
}  # fmt: skip
VIDEO = ("r3d_18", "mc3_18", "r2plus1d_18", "swin3d_t")


def clips(batch, size):
    return (torch.randn(batch, 3, 4, size, size),), {}


def image_pairs(batch, size):
    return (torch.rand(batch, 3, size, size), torch.rand(batch, 3, size, size)), {}


def load_torchvision():
    define_nms()
    import torchvision  # noqa: F401


def torchvision_model(name):
    import torchvision

    size, other, arguments = TORCHVISION[name]
    model = torchvision.models.get_model(name, weights=None, **arguments)
    inputs = clips if name in VIDEO else image_pairs if name == "raft_small" else images
    return Case(model, inputs, size, other)


# ---- segmentation_models_pytorch ----------------------------------------------------------------

SEGMENTATION = ("Unet", "UnetPlusPlus", "MAnet", "Linknet", "FPN", "PSPNet", "DeepLabV3",
                "DeepLabV3Plus", "UPerNet", "Segformer")  # fmt: skip


def load_segmentation():
    define_nms()
    import segmentation_models_pytorch  # noqa: F401


def segmentation_model(name):
    import segmentation_models_pytorch as library

    model = getattr(library, name)("resnet18", encoder_weights=None, classes=2)
    return Case(model, images, 64, 96)
