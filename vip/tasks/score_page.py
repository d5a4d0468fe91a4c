def write_page(scores, path):
    raise NotImplementedError
