"""The names of the 121 sets, to report those that are missing."""

_NAMES = """
    abalone acute-inflammation acute-nephritis adult annealing arrhythmia audiology-std balance-scale balloons bank
    blood breast-cancer breast-cancer-wisc breast-cancer-wisc-diag breast-cancer-wisc-prog breast-tissue car
    cardiotocography-10clases cardiotocography-3clases chess-krvk chess-krvkp congressional-voting
    conn-bench-sonar-mines-rocks conn-bench-vowel-deterding connect-4 contrac credit-approval cylinder-bands
    dermatology echocardiogram ecoli energy-y1 energy-y2 fertility flags glass haberman-survival hayes-roth
    heart-cleveland heart-hungarian heart-switzerland heart-va hepatitis hill-valley horse-colic ilpd-indian-liver
    image-segmentation ionosphere iris led-display lenses letter libras low-res-spect lung-cancer lymphography magic
    mammographic miniboone molec-biol-promoter molec-biol-splice monks-1 monks-2 monks-3 mushroom musk-1 musk-2
    nursery oocytes_merluccius_nucleus_4d oocytes_merluccius_states_2f oocytes_trisopterus_nucleus_2f
    oocytes_trisopterus_states_5b optical ozone page-blocks parkinsons pendigits pima pittsburg-bridges-MATERIAL
    pittsburg-bridges-REL-L pittsburg-bridges-SPAN pittsburg-bridges-T-OR-D pittsburg-bridges-TYPE planning
    plant-margin plant-shape plant-texture post-operative primary-tumor ringnorm seeds semeion soybean spambase
    spect spectf statlog-australian-credit statlog-german-credit statlog-heart statlog-image statlog-landsat
    statlog-shuttle statlog-vehicle steel-plates synthetic-control teaching thyroid tic-tac-toe titanic trains
    twonorm vertebral-column-2clases vertebral-column-3clases wall-following waveform waveform-noise wine
    wine-quality-red wine-quality-white yeast zoo
"""
OFFICIAL = tuple(_NAMES.split())
