
-- Batch jobs of classes that opt in ask what was advised of them: `slurm: {advice: ...}`. The lines are
-- tidegate/wire/advice.py's: a class that has the same work behind it and asks the same, which account
-- opted in ("": any), what it may ask instead ("": as it does), when that was proved, until when it
-- counts, and why. The first line that fits counts. Nothing is ever raised.

local ADVICE = "/etc/slurm/advice"
local FIELDS = 18
-- Slurm refuses a job whose comment is longer than 1024.
local COMMENT_MOST = 1000
local KEY = "tidegate:advised="
local unpack = unpack or table.unpack

local function lines()
    local file = io.open(ADVICE)
    return file and file:lines() or function() end
end

local function fields(line)
    local found = {}
    for each in string.gmatch(line .. "\t", "([^\t]*)\t") do
        found[#found + 1] = each
    end
    return #found == FIELDS and found or nil
end

-- `train-0017` and `train-0018` are the same work, as `tidegate advise` has it.
local function stem(name)
    return (string.gsub(name or "", "%d+", "#"))
end

local function partition_of(job, part_list)
    if job.partition then
        return job.partition
    end
    for name, each in pairs(part_list) do
        if each.flag_default ~= 0 then
            return name
        end
    end
end

local function near(a, b)
    return b and math.abs(a - b) <= 0.01 * b
end

-- Whether the line is about work like this job, which asks what was asked then.
local function fits(line, job, wanted)
    local account, nodes, gpus, kind, cpus, memory, constraint = unpack(line, 4, 10)
    local until_s = tonumber(line[17])
    return (account == "" or account == string.lower(job.account or job.default_account or ""))
        and tonumber(nodes) == wanted.nodes and (given(job.max_nodes) or wanted.nodes) == wanted.nodes
        and tonumber(gpus) == wanted.gpus and (kind == "" or kind == wanted.kind)
        and tonumber(cpus) == wanted.cpus and constraint == (job.features or "")
        and (wanted.memory == 0 or near(wanted.memory, tonumber(memory)))
        and until_s and os.time() < until_s
end

-- srun inherits what its job has, but for numbers that the script tells it: more than the job has fails.
local function says_again(script)
    for line in string.gmatch(string.gsub(script, "\\\n", " "), "[^\n]+") do
        if string.find(line, "srun", 1, true) then
            for _, option in ipairs({ "mem", "gres", "gpus", "cpus" }) do
                if string.find(line, "%-%-" .. option .. "[%a-]*[=%s][%a:_-]*%d") then
                    return true
                end
            end
            if string.find(line, "%s%-[cG]%s*%d") then
                return true
            end
        end
    end
    return false
end

local function is_one_task(job)
    return math.max(given(job.num_tasks) or 0, given(job.min_nodes) or 0, given(job.ntasks_per_node) or 0,
        given(job.ntasks_per_tres) or 0) <= 1
end

-- From 23.11 on `--cpus-per-task=8` is here as well, as "cpu:8" or "cpu=8"; nothing else may be.
local CPU_OF_TASK = "^(cpu[:=])%d+$"

local function has_only_cpus(job)
    return not job.tres_per_task or string.find(job.tres_per_task, CPU_OF_TASK)
end

-- "gres:gpu:4" with fewer of them; nil: it says more than that, or says it elsewhere too.
local function fewer(job, now, kind)
    local before, type, sign, count = string.match(
        job.tres_per_node or "", "^(%a*[:/]?gpu)(:?[%a_-]?[%w_-]-)([:=])(%d+)$")
    local others = job.tres_per_job or job.tres_per_socket or not has_only_cpus(job) or job.cpus_per_tres
        or job.mem_per_tres or job.environment["SLURM_GPUS_PER_NODE"]
    if not count or others or not is_one_task(job) or now < 1 or now >= tonumber(count) then
        return nil
    end
    return before .. (type == "" and kind ~= "" and ":" .. kind or type) .. sign .. now
end

local function time(minutes)
    return string.format("%d:%02d:00", math.floor(minutes / 60), minutes % 60)
end

local function size(mib)
    return string.format(mib % 1024 == 0 and "%dG" or "%dM", mib % 1024 == 0 and mib / 1024 or mib)
end

local function count(number)
    return string.format("%d", number)
end

local function devices(text)
    return (string.gsub(text, "^gres[:/]", ""))
end

-- What is less now: the option, the field, its values before and after, and how they are written.
local function changes(line, job)
    local gpus, kind, cpus, memory, minutes = tonumber(line[11]), line[12], tonumber(line[13]),
        tonumber(line[14]), tonumber(line[15])
    local limit, per_node, per_task = given(job.time_limit), given(job.min_mem_per_node), given(job.cpus_per_task)
    local found = {}
    if limit and minutes and minutes < limit and (given(job.time_min) or 0) == 0 then
        found[#found + 1] = { "time", "time_limit", limit, minutes, time }
    end
    if says_again(job.script) then
        return found
    end
    if per_node and memory and memory < per_node then
        found[#found + 1] = { "mem", "min_mem_per_node", per_node, memory, size }
    end
    -- Without --mem a job with fewer CPUs would have less memory, by DefMemPerCPU.
    local is_alone = is_one_task(job) and has_only_cpus(job) and (given(job.pn_min_cpus) or 0) <= (per_task or 0)
    if per_node and per_task and cpus and cpus < per_task and is_alone and not job.cpus_per_tres then
        found[#found + 1] = { "cpus-per-task", "cpus_per_task", per_task, cpus, count }
    end
    local gres = gpus and fewer(job, gpus, kind)
    if gres then
        found[#found + 1] = { "gres", "tres_per_node", job.tres_per_node, gres, devices }
    end
    return found
end

local function apply(line, job)
    local found = changes(line, job)
    local written, said = {}, {}
    for _, each in ipairs(found) do
        local option, _, before, after, shown = unpack(each)
        written[#written + 1] = string.format("%s:%s>%s", option, shown(before), shown(after))
        said[#said + 1] = string.format("--%s=%s instead of %s", option, shown(after), shown(before))
    end
    local word = KEY .. line[16] .. "/" .. table.concat(written, ",") .. "/" .. line[18]
    local comment = string.gsub(job.comment or "", "%s*" .. KEY .. "%S*", "")
    comment = comment == "" and word or comment .. " " .. word
    if #found == 0 or #comment > COMMENT_MOST then
        return
    end
    job.comment = comment
    for _, each in ipairs(found) do
        job[each[2]] = each[4]
        if each[2] == "cpus_per_task" then
            job.min_cpus = each[4]
            job.pn_min_cpus = each[4]
            if job.tres_per_task then
                job.tres_per_task = string.gsub(job.tres_per_task, CPU_OF_TASK, "%1" .. each[4])
            end
        end
    end
    slurm.log_user("%s, as jobs like it used (advice of %s); as asked: --comment=tidegate:as-asked",
        table.concat(said, ", "), line[16])
end

local function advise(job, part_list)
    local is_exempt = string.find(job.comment or "", "tidegate:as-asked", 1, true)
    -- A request of srun or salloc is asked again by its steps, as it was.
    if is_exempt or not job.script or job.script == "" or given(job.het_job_offset) then
        return
    end
    local wanted = shape(job)
    local work = table.concat({ job.user_name, stem(job.name), partition_of(job, part_list), "" }, "\t")
    for text in lines() do
        local line = string.sub(text, 1, #work) == work and fields(text)
        if line and fits(line, job, wanted) then
            return apply(line, job)
        end
    end
end

steps[#steps + 1] = advise
